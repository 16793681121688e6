"""Runs of Weights & Biases: a live project, and the files that its client leaves on disk."""
