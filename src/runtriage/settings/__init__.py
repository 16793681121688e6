"""What a user may set, where it was set, and the check at the door."""

from runtriage.settings.load import Loaded, load
from runtriage.settings.schema import AnalysisSettings, CacheSettings, Settings, SweepSettings

__all__ = ["AnalysisSettings", "CacheSettings", "Loaded", "Settings", "SweepSettings", "load"]
