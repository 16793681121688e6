"""Addresses of sources and runs: one textual form everywhere, read and written here and nowhere else.

A canonical address never contains credentials, so it may be printed, logged and stored in reports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from runtriage.errors import UsageError

FORMS: tuple[str, ...] = (
    "files:DIR",
    "mlflow-local:DIR",
    "wandb-local:DIR",
    "mlflow://HOST[:PORT]/EXPERIMENT[/RUN]",
    "mlflow+https://HOST[:PORT]/EXPERIMENT[/RUN]",
    "mlflow:[EXPERIMENT[/RUN]] with MLFLOW_TRACKING_URI set",
    "mlflow-sql:DATABASE_URL#EXPERIMENT[/RUN]",
    "wandb://ENTITY/PROJECT[/RUN]",
)
"""The supported forms, as shown to people. A local DIR may end in ``/RUN`` where one run is meant."""

LOCAL_SCHEMES: frozenset[str] = frozenset({"files", "mlflow-local", "wandb-local"})
SQL_SCHEME = "mlflow-sql"
_SHOWN_OPTIONS = ("host", "port", "dbname", "service", "sslmode")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_PAGE = re.compile(r"(https?)://([A-Za-z0-9.\-\[\]:]+)", re.IGNORECASE)
_USERINFO = re.compile(r"//[^/]*@")
_READABLE = " @:+=,()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A parsed address.

    Attributes
    ----------
    scheme
        Lower-case, without the colon.
    location
        The folder of a local source; ``HOST[:PORT]`` of a server, empty for ``mlflow:`` (take it from the environment);
        whatever follows the colon for the scheme of a plugin.
    parts
        Decoded path below the location without the run: ``(experiment,)`` for MLflow, ``(entity, project)`` for W&B.
    run
        The run, if the address names one. Local sources cannot tell from the text alone: see
        :func:`runtriage.registry.split_run`.
    credentials
        User and password that stood in the URL. Left out of ``repr``, of equality and of :attr:`canonical`.
    """

    scheme: str
    location: str
    parts: tuple[str, ...] = ()
    run: str | None = None
    credentials: tuple[str, str] | None = field(default=None, repr=False, compare=False)

    @property
    def canonical(self) -> str:
        """The address of the source as text, without run and without credentials.

        Examples
        --------
        >>> parse_address("MLflow://me:secret@host:5000/my%20exp/1f2e").canonical
        'mlflow://host:5000/my exp'
        """
        if self.scheme == SQL_SCHEME:
            return f"{self.scheme}:{self.location}#" + "/".join(map(_quoted, self.parts))
        return f"{self.scheme}:{self._opening}" + "/".join([*self._first, *map(_quoted, self.parts)])

    @property
    def with_run(self) -> str:
        """The address of the run as text; of the source if no run is named. Without credentials."""
        return run_address(self.canonical, self.run) if self.run is not None else self.canonical

    @property
    def _opening(self) -> str:
        return "//" if self.scheme == "wandb" or (self.scheme.startswith("mlflow") and self._is_server) else ""

    @property
    def _is_server(self) -> bool:
        return self.scheme not in LOCAL_SCHEMES and bool(self.location)

    @property
    def _first(self) -> tuple[str, ...]:
        return (self.location,) if self.location else ()


def parse_address(text: str) -> Address:
    """Read an address.

    Parameters
    ----------
    text
        As typed by a person.

    Returns
    -------
    Address
        With :attr:`Address.run` set for server addresses that name a run.

    Raises
    ------
    UsageError
        Not an address, or incomplete; the hint lists the supported forms.

    Examples
    --------
    >>> parse_address("files:runs/").location
    'runs'
    >>> parse_address("mlflow:llm/1f2e").run
    '1f2e'
    """
    match = _SCHEME.match(text.strip())
    if match is None:
        raise UsageError("this is not the address of a source", where=redacted(text), hint=meant_hint(text))
    scheme, rest = match[1].lower(), text.strip()[match.end() :]
    if scheme in LOCAL_SCHEMES:
        return Address(scheme=scheme, location=_folder(rest, text))
    if scheme in ("mlflow", "mlflow+https"):
        return _mlflow(scheme, rest, text)
    if scheme == "wandb":
        return _wandb(rest, text)
    if scheme == SQL_SCHEME:
        return _mlflow_sql(rest, text)
    return Address(scheme=scheme, location=redacted(rest))


def run_address(source: str, run: str) -> str:
    """Return the address of one run of a source given by its canonical address.

    Examples
    --------
    >>> run_address("files:runs", "r9d9")
    'files:runs/r9d9'
    """
    separator = "" if source.endswith("/") or not source.partition(":")[2] else "/"
    local = source.partition(":")[0] in LOCAL_SCHEMES
    return f"{source}{separator}{run if local else _quoted(run)}"


def database_url(address: str) -> str:
    """Return the URL of the database in a ``mlflow-sql:`` address, with any credentials in it.

    Examples
    --------
    >>> database_url("mlflow-sql:sqlite:///mlflow.db#exp/run")
    'sqlite:///mlflow.db'
    """
    return address.strip().partition(":")[2].partition("#")[0]


def forms_hint() -> str:
    """Return the sentence that lists the supported forms."""
    return "supported: " + ", ".join(FORMS)


def meant_hint(text: str) -> str:
    """Return what was probably meant by an address that is none, and the supported forms.

    Examples
    --------
    >>> meant_hint("http://me:secret@host:5000/#/experiments/1").partition(";")[0]
    'an MLflow server is mlflow://host:5000/EXPERIMENT'
    >>> meant_hint("runs").partition(";")[0]
    'a folder of runs is files:runs'
    """
    page = _PAGE.match(redacted(text).strip())
    if page is not None:
        secure = "+https" if page[1].lower() == "https" else ""
        return f"an MLflow server is mlflow{secure}://{page[2]}/EXPERIMENT; {forms_hint()}"
    if _SCHEME.match(text.strip()) is None:
        return f"a folder of runs is files:{redacted(text).strip()}; {forms_hint()}"
    return forms_hint()


def redacted(text: str) -> str:
    """Return text with the user and password of a URL taken out, fit for messages.

    Examples
    --------
    >>> redacted("mlflow://me:secret@host/exp")
    'mlflow://host/exp'
    """
    head, colon, rest = text.strip().partition(":")
    if colon and head.lower() == SQL_SCHEME:
        url, mark, tail = rest.partition("#")
        return f"{head}:{_shown_database(url)}{mark}{tail}"
    return _USERINFO.sub("//", text)


def _quoted(part: str) -> str:
    # A blank at either end would be lost when the address is read back.
    inner = part.strip(" ")
    before = len(part) - len(part.lstrip(" ")) if inner else len(part)
    after = len(part) - before - len(inner)
    return "%20" * before + quote(inner, safe=_READABLE) + "%20" * after


def _folder(rest: str, text: str) -> str:
    folder = rest.removeprefix("//")
    folder = folder.rstrip("/") or ("/" if folder.startswith("/") else "")
    if not folder or "\0" in folder:
        raise UsageError("the address names no folder", where=redacted(text), hint=forms_hint())
    return folder


def _path_parts(path: str, text: str, most: int) -> list[str]:
    parts = [unquote(part) for part in path.split("/") if part]
    if len(parts) > most:
        raise UsageError(
            "the address has too many parts",
            where=redacted(text),
            hint="write a slash inside a name as %2F; " + forms_hint(),
        )
    return parts


def _mlflow(scheme: str, rest: str, text: str) -> Address:
    if not rest.startswith("//"):
        if scheme != "mlflow":
            raise UsageError("the address names no server", where=redacted(text), hint=forms_hint())
        parts = _path_parts(rest, text, 2)
        return Address(scheme=scheme, location="", parts=tuple(parts[:1]), run=parts[1] if len(parts) > 1 else None)
    try:
        url = urlsplit(f"{scheme}:{rest}")
        host, port = url.hostname, url.port
    except ValueError:
        raise UsageError("the server of the address cannot be read", where=redacted(text), hint=forms_hint()) from None
    # '?' and '#' are legal in experiment names, which is all that can follow the host here.
    path = rest[2:].partition("/")[2]
    parts = _path_parts(path, text, 2)
    if not host or not parts:
        what = "experiment" if host else "server"
        raise UsageError(f"the address names no {what}", where=redacted(text), hint=forms_hint())
    shown = f"[{host}]" if ":" in host else host
    credentials = (unquote(url.username), unquote(url.password or "")) if url.username else None
    return Address(
        scheme=scheme,
        location=f"{shown}:{port}" if port is not None else shown,
        parts=tuple(parts[:1]),
        run=parts[1] if len(parts) > 1 else None,
        credentials=credentials,
    )


def _wandb(rest: str, text: str) -> Address:
    path = _USERINFO.sub("//", rest).removeprefix("//")
    parts = _path_parts(path, text, 3)
    if not rest.startswith("//") or len(parts) < 2:
        raise UsageError("the address names no entity and project", where=redacted(text), hint=forms_hint())
    return Address(scheme="wandb", location="", parts=tuple(parts[:2]), run=parts[2] if len(parts) > 2 else None)


def _mlflow_sql(rest: str, text: str) -> Address:
    url, _, path = rest.partition("#")
    parts = _path_parts(path, text, 2)
    if "://" not in url or not parts:
        what = "experiment" if "://" in url else "database"
        raise UsageError(f"the address names no {what}", where=redacted(text), hint=forms_hint())
    run = parts[1] if len(parts) > 1 else None
    return Address(scheme=SQL_SCHEME, location=_shown_database(url), parts=tuple(parts[:1]), run=run)


def _shown_database(url: str) -> str:
    """Return the URL of a database without user, password and options that may hold one."""
    kind, mark, rest = url.partition("://")
    if kind.lower().startswith("sqlite"):
        return url.partition("?")[0]
    # Up to the last '@': a password typed without quoting may hold any character.
    place, _, query = rest.rpartition("@")[2].partition("?")
    kept = [option for option in query.split("&") if option.partition("=")[0] in _SHOWN_OPTIONS]
    return f"{kind}{mark}{place}" + ("?" + "&".join(kept) if kept else "")
