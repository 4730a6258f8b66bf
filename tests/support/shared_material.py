"""Models and instances that may lie beside the checkout; never part of the project."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared"


def shared(relative: str) -> Path:
    """Return the path, skipping the test when the folder is absent."""
    if not SHARED.is_dir():
        pytest.skip("../shared/... is not beside the checkout")
    return SHARED / relative
