"""Telling people: what is new since the last time, in which words, and by which way."""
