"""Alert rules: deriving them from cohorts, reading and writing them, replaying them over histories. Pure."""
