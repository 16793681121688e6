"""Contracts ship with the package; pytest must be told to explain their asserts."""

import pytest

pytest.register_assert_rewrite("runtriage.testing.contracts")
