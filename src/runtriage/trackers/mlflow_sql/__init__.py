"""MLflow's database, read directly and never written: fast, opt-in, for who may read it past the tracking server."""
