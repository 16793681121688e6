"""Settings from their four places: defaults, then a file, then ``RUNTRIAGE_*``, then flags. Validated once, here.

The file is ``runtriage.toml`` or the table ``[tool.runtriage]`` of ``pyproject.toml``, in the working folder. A
variable is the path of the setting with a double underscore between its parts, ``RUNTRIAGE_SWEEP__READERS=8``; lists
are separated by commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from runtriage.errors import SettingsError
from runtriage.model.refs import redacted
from runtriage.model.vocab import Level, Role
from runtriage.settings.schema import EXECUTORS, MARK_KINDS, Settings

ENV_PREFIX = "RUNTRIAGE_"
_NOT_SETTINGS = frozenset({"RUNTRIAGE_CORPORA", "RUNTRIAGE_DEBUG", "RUNTRIAGE_NOTIFY_URLS"})
_LISTS = frozenset({"sweep.write", "sweep.notify", "analysis.ignore_keys"})
_SECRET = frozenset({"sweep.notify"})
"""Lists of addresses of which only the scheme is shown: tokens stand anywhere in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Settings with their provenance.

    Attributes
    ----------
    settings
        The tree.
    origin
        Dotted path to where its value came from (a file, a variable, ``flag``); a path that is not there has its
        default.
    """

    settings: Settings
    origin: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return one line a setting: ``path = value  (origin)``."""
        flat = _flatten(msgspec.to_builtins(self.settings))
        return [f"{path} = {_shown(value, path)}  ({self.origin.get(path, 'default')})" for path, value in flat]


def load(folder: Path, environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Loaded:
    """Read and validate all settings.

    Parameters
    ----------
    folder
        Where the settings file is looked for.
    environ
        The environment.
    flags
        Dotted path to value; None means that the flag was not given.

    Raises
    ------
    SettingsError
        A file that is not TOML, a setting that does not exist, or a value that does not fit; ``where`` says which and
        from which place.
    """
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for path, value, place in (*_from_file(folder), *_from_environ(environ), *_from_flags(flags or {})):
        values[path] = value
        origin[path] = place
    tree: dict[str, Any] = {}
    for path, value in values.items():
        _plant(tree, path, value)
    try:
        settings = msgspec.convert(tree, Settings, strict=False)
    except msgspec.ValidationError as error:
        what, path = _located(str(error))
        raise SettingsError(what, where=_where(path, origin)) from None
    _check(settings, origin)
    return Loaded(settings=settings, origin=origin)


def _from_file(folder: Path) -> Iterator[tuple[str, Any, str]]:
    own, shared = folder / "runtriage.toml", folder / "pyproject.toml"
    if own.is_file():
        table = _table(own)
    elif shared.is_file():
        table = _table(shared).get("tool", {}).get("runtriage", {})
    else:
        return
    place = own.name if own.is_file() else f"{shared.name} [tool.runtriage]"
    if not isinstance(table, dict):
        raise SettingsError("the settings are not a table", where=place)
    for path, value in _flatten(table):
        yield path, value, place


def _table(path: Path) -> dict[str, Any]:
    try:
        table = msgspec.toml.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings file cannot be read: {error}", where=path.name) from None
    return table if isinstance(table, dict) else {}


def _from_environ(environ: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    for name in sorted(environ):
        if name.startswith(ENV_PREFIX) and name not in _NOT_SETTINGS:
            path = name.removeprefix(ENV_PREFIX).lower().replace("__", ".")
            value: Any = environ[name]
            if path in _LISTS:
                value = [part.strip() for part in value.split(",") if part.strip()]
            elif path == "analysis.roles":
                raise SettingsError("roles can only be set in a file", where=name)
            yield path, value, name


def _from_flags(flags: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    for path, value in flags.items():
        if value is not None:
            yield path, value, "flag"


def _flatten(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping) and path != "analysis.roles":
            yield from _flatten(value, f"{path}.")
        else:
            yield path, value


def _plant(tree: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for part in above:
        inner = tree.setdefault(part, {})
        if not isinstance(inner, dict):
            raise SettingsError("this is a value, not a table", where=f"$.{part}")
        tree = inner
    tree[last] = value


def _located(message: str) -> tuple[str, str]:
    match = re.search(r" - at `(\$[^`]*)`$", message)
    return (message[: match.start()], match[1]) if match else (message, "$")


def _where(path: str, origin: Mapping[str, str]) -> str:
    dotted = re.sub(r"\[[^]]*\]", "", path.removeprefix("$").lstrip("."))
    places = [place for at, place in origin.items() if at == dotted or at.startswith(f"{dotted}." if dotted else "")]
    return f"{path} ({places[0]})" if len(set(places)) == 1 else path


def _check(settings: Settings, origin: Mapping[str, str]) -> None:
    for i, kind in enumerate(settings.sweep.write):
        if kind not in (*MARK_KINDS, "all"):
            hint = f"any of {', '.join(MARK_KINDS)}, or all"
            raise SettingsError(f"{kind!r} cannot be written", where=_where(f"$.sweep.write[{i}]", origin), hint=hint)
    name, colon, place = settings.sweep.executor.partition(":")
    if name not in EXECUTORS or (colon and not (name == "dask" and place)):
        hint = f"one of {', '.join(EXECUTORS)}"
        what = f"there is no executor {settings.sweep.executor!r}"
        raise SettingsError(what, where=_where("$.sweep.executor", origin), hint=hint)
    if settings.sweep.fail_on is Level.WITHHELD:
        raise SettingsError("withheld is outside the order of verdicts", where=_where("$.sweep.fail_on", origin))
    for name, role in settings.analysis.roles.items():
        if role not in {str(known) for known in Role}:
            hint = f"one of {', '.join(Role)}"
            raise SettingsError(f"there is no role {role!r}", where=f"$.analysis.roles[{name!r}]", hint=hint)
    for i, pattern in enumerate(settings.analysis.ignore_keys):
        try:
            re.compile(pattern)
        except re.error as error:
            what = f"not a regular expression: {error}"
            raise SettingsError(what, where=_where(f"$.analysis.ignore_keys[{i}]", origin)) from None


def _shown(value: Any, path: str) -> str:
    if path in _SECRET:
        value = [f"{address.partition(':')[0]}://…" for address in value]
    return msgspec.json.encode(redacted(value) if isinstance(value, str) else value).decode()
