"""A kit for the tests of sources, plugins and callers: contracts, strategies and made-up runs."""
