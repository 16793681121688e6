"""A proxy that stands between us and a server, and lets things go wrong, request by request."""

from fault_proxy.proxy import Fault, Proxy, Seen

__all__ = ["Fault", "Proxy", "Seen"]
