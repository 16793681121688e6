"""What is said and what hangs on runs afterwards: reports, marks, plans. Pure."""
