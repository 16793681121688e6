"""What is worked out from curves; pure: no clock, no files, no network, no randomness of its own."""
