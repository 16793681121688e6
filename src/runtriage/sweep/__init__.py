"""Many runs: which, read how, judged in which groups, and what became of each."""
