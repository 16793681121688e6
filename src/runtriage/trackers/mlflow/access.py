"""Which server to talk to and as whom: address and environment in, :class:`Access` out.

The environment variables are MLflow's own, so that whoever can use ``mlflow`` in a shell can use this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from runtriage.errors import UsageError
from runtriage.model.refs import Address, forms_hint, parse_address, redacted

_DEFAULT_PORT = 5000
_TRUE = frozenset({"true", "1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A server, an experiment on it, and how to be let in.

    Attributes
    ----------
    base
        ``scheme://host[:port][/prefix]``, without credentials and without a final slash: fit for messages.
    address
        Canonical address of the source.
    experiment
        Id or name as asked for.
    basic, token
        Credentials; never shown.
    verify
        Whether, or against which file, the server's certificate is checked.
    client_cert
        Path of a client certificate, or None.
    """

    base: str
    address: str
    experiment: str
    basic: tuple[str, str] | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    verify: bool | str = True
    client_cert: str | None = None


def access_to(address: str, environ: Mapping[str, str]) -> Access:
    """Work out the server, the experiment and the credentials of an address.

    Parameters
    ----------
    address
        ``mlflow://HOST[:PORT]/EXPERIMENT``, ``mlflow+https://…`` or ``mlflow:[EXPERIMENT]``. Without a port, plain HTTP
        means MLflow's own port, 5000.
    environ
        ``MLFLOW_TRACKING_URI`` and ``MLFLOW_EXPERIMENT_NAME`` or ``_ID`` fill what ``mlflow:`` leaves open;
        ``MLFLOW_TRACKING_USERNAME`` with ``_PASSWORD`` win over ``MLFLOW_TRACKING_TOKEN``, and credentials in the
        address win over both.

    Raises
    ------
    UsageError
        The address or ``MLFLOW_TRACKING_URI`` names no tracking server, or no experiment.
    """
    parsed = parse_address(address)
    credentials = parsed.credentials
    experiment = parsed.parts[0] if parsed.parts else _experiment_from(environ)
    if parsed.location:
        base, canonical = _base(parsed), parsed.canonical
    else:
        base, credentials = _server_from(environ)
        canonical = _canonical(base, experiment)
    user, password = environ.get("MLFLOW_TRACKING_USERNAME"), environ.get("MLFLOW_TRACKING_PASSWORD")
    basic = credentials or ((user, password) if user and password else None)
    insecure = environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in _TRUE
    return Access(
        base=base,
        address=canonical,
        experiment=experiment,
        basic=basic,
        token=None if basic else (environ.get("MLFLOW_TRACKING_TOKEN") or None),
        verify=not insecure and (environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or True),
        client_cert=environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH") or None,
    )


def _base(parsed: Address) -> str:
    if parsed.scheme == "mlflow+https":
        return f"https://{parsed.location}"
    has_port = parsed.location.rpartition("]")[2].count(":") > 0
    return f"http://{parsed.location}" if has_port else f"http://{parsed.location}:{_DEFAULT_PORT}"


def _experiment_from(environ: Mapping[str, str]) -> str:
    found = environ.get("MLFLOW_EXPERIMENT_ID") or environ.get("MLFLOW_EXPERIMENT_NAME")
    if not found:
        raise UsageError(
            "the address names no experiment",
            where="mlflow:",
            hint="write mlflow:EXPERIMENT or set MLFLOW_EXPERIMENT_NAME; " + forms_hint(),
        )
    return found


def _server_from(environ: Mapping[str, str]) -> tuple[str, tuple[str, str] | None]:
    uri = environ.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        raise UsageError("MLFLOW_TRACKING_URI is not set", where="mlflow:", hint=forms_hint())
    try:
        url = urlsplit(uri)
        host, port = url.hostname, url.port
    except ValueError:
        host = None
    if host is None or url.scheme not in ("http", "https"):
        raise UsageError(
            "MLFLOW_TRACKING_URI is not the address of a tracking server",
            where=redacted(uri),
            hint="http:// and https:// can be read; for an mlruns folder use mlflow-local:DIR",
        )
    shown = f"[{host}]" if ":" in host else host
    place = f"{shown}:{port}" if port is not None else shown
    credentials = (unquote(url.username), unquote(url.password or "")) if url.username else None
    return f"{url.scheme}://{place}{url.path.rstrip('/')}", credentials


def _canonical(base: str, experiment: str) -> str:
    url = urlsplit(base)
    if url.path:  # a server below a path cannot be written as mlflow://, only through the environment
        return f"mlflow:{quote(experiment, safe=' @:+=,()')}"
    scheme = "mlflow+https" if url.scheme == "https" else "mlflow"
    place = url.netloc if url.scheme == "https" or url.port is not None else f"{url.netloc}:80"
    return Address(scheme=scheme, location=place, parts=(experiment,)).canonical
