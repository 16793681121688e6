"""A proxy that stands between us and a server, and lets things go wrong, request by request."""

from fault_proxy.faults import Fault, Seen
from fault_proxy.proxy import Proxy

__all__ = ["Fault", "Proxy", "Seen"]
