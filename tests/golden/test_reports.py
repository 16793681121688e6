"""Reports read as they were approved."""

from __future__ import annotations

import pytest

from tests.golden.made import FOLDER, GOLDENS


@pytest.mark.parametrize("name", sorted(GOLDENS))
def test_reports_read_as_approved(name: str) -> None:
    """A report of a made run is what the golden file holds; look at the difference before writing it anew."""
    assert GOLDENS[name]() == (FOLDER / name).read_text(encoding="utf-8")


def test_no_golden_file_is_an_orphan() -> None:
    """Every file in the folder is compared with something."""
    assert {path.name for path in FOLDER.iterdir()} == set(GOLDENS)
