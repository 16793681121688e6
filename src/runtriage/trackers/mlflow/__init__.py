"""MLflow: a tracking server over REST, or an ``mlruns/`` folder as text."""
