"""Versions of MLflow's schema whose six tables of runs and metrics are known to hold what is read here. Pure."""

from __future__ import annotations

from runtriage.errors import SourceError

RELEASES = {"dc11669786a5": "MLflow 3.17", "f4a9b2c7d1e6": "MLflow 3.18"}
"""Newest versions, with the release that brought them."""

KNOWN = frozenset({
    "2d6e25af4d3e", "acf3f17fdcc7", "867495a8f9d4", "5b0e9adcef9c", "4465047574b1", "f5a4f2784254", "0584bdc529eb",
    "400f98739977", "6953534de441", "bda7b8c39065", "cbc13b556ace", "770bee3ae1dd", "a1b2c3d4e5f6", "de4033877273",
    "1a0cddfcaa16", "534353b11cbc", "71994744cf8e", "3da73c924c2f", "bf29a5ff90ea", "1bd49d398cd23", "b7c8d9e0f1a2",
    "5d2d30f0abce", "c9d4e5f6a7b8", "2c33131f4dae", "d3e4f5a6b7c8", "d0e1f2a3b4c5", "c8d9e0f1a2b3", "1b5f0d9ad7c1",
    "e1f2a3b4c5d6", "76601a5f987d", "c3d6457b6d8a", "a5b4c3d2e1f0", "ae8bbe7743c9", "7d34483879f0", "da6fb0208061",
    "89d3d66ed43f", "b7e4c1a90f23", "a8b9c0d1e2f3", "c1d2e3f4a5b6", "c3d9e7f1a2b4", "6f8d9c3b2a1e", "1971f2d9a75b",
    "17e22815139b", "b7e2c1a4d9f3", "75868b020152", "dc11669786a5", "f4a9b2c7d1e6",
})
"""Alembic's names of all versions that can be read: 2d6e25af4d3e and what came after it."""


def check_version(found: list[str], where: str) -> None:
    """Refuse a schema that is not known: its columns might mean something else.

    Parameters
    ----------
    found
        Versions that the database says it has.
    where
        The database, for the message.

    Raises
    ------
    SourceError
        Not exactly one version, or one that is not known.
    """
    if len(found) == 1 and found[0] in KNOWN:
        return
    said = ", ".join(repr(version[:40]) for version in found[:3]) or "none"
    newest = ", ".join(f"{version} ({release})" for version, release in RELEASES.items())
    raise SourceError(
        f"the schema of this database is not known here: version {said}",
        where=where,
        hint=f"known are {newest} and {len(KNOWN) - len(RELEASES)} before them; "
        "read it through its server (mlflow://…), or upgrade runtriage",
    )
