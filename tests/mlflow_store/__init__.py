"""Databases that the real MLflow wrote, for tests that read them past it."""
