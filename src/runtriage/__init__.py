"""Tell whether training runs are healthy, what is wrong if not, why probably, and how to check."""

__version__ = "0.1.0"
