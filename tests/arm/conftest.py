"""Where `make test-arm` cross-compiles the runtime."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    folder = os.environ.get("ARENITE_ARM")
    if folder is None:
        pytest.skip("needs the cross-compiled runner: run `make test-arm`")
    return Path(folder)
