"""A real MLflow tracking server to read and mark, and one that goes wrong on purpose."""

from mlflow_server.faults import Answer, FaultServer
from mlflow_server.real import RealServer, Rest

__all__ = ["Answer", "FaultServer", "RealServer", "Rest"]
