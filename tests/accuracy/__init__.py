"""Figures of the README, regenerated from labelled runs."""
