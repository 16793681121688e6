"""A small stand-in for a W&B server: enough of the wire contract that the real client works against it end to end.

It serves on 127.0.0.1 only. What it does is what the client was seen to need; where the real server's behaviour is not
known (how NaN is written, how nested keys are exported, ...) there is a switch, and the tests run under each position.
"""

from wandb_server.http import Fault, StandIn
from wandb_server.state import Behaviour, StoredRun, World

__all__ = ["Behaviour", "Fault", "StandIn", "StoredRun", "World"]
