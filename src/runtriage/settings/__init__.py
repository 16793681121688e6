"""What a user may set, where it was set, and the check at the door."""

from runtriage.settings.load import Loaded, load
from runtriage.settings.schema import AnalysisSettings, Settings, SweepSettings

__all__ = ["AnalysisSettings", "Loaded", "Settings", "SweepSettings", "load"]
