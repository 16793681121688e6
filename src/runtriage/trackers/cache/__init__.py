"""Histories kept beside their tracker, so that a sweep pulls only what is new. They save time and decide nothing."""
