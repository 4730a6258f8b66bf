"""Settings for every test."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from support.entry_points import make_known
from support.skips import pytest_terminal_summary  # noqa: F401  # a hook

make_known()

# Machines are shared: how long an example takes says nothing of the code.
settings.register_profile("arenite", deadline=None)
settings.load_profile("arenite")

# A shell lets what it starts in the background ignore Ctrl-C, and so do its children; the tests
# that press it want it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW = (
    "runtime/test_fuzz.py", "docs/test_docs.py", "contract/test_strategies.py",
    "runtime/targets/test_tflm_export.py", "runtime/cexport/test_bands.py",
    "contract/test_policies.py", "cli/test_cluster.py", "bench/test_digits_compression.py",
    "strategies/test_fuzz.py", "hostile/test_flipped_files.py",
)  # fmt: skip
"""Files that take longest, first: the last one must not keep one worker busy alone."""


def pytest_collection_modifyitems(items):
    places = {Path(__file__).parent / name: place for place, name in enumerate(SLOW)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(autouse=True)
def _costs_of_no_machine(tmp_path_factory, monkeypatch):
    """Predict by stated costs, whatever was measured on the machine that tests run on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def without(monkeypatch):
    """Return a function that hides packages from this test, and has modules imported again."""

    def without(*packages, forget=()):
        for name in [name for name in sys.modules if name.startswith(tuple(forget))]:
            monkeypatch.delitem(sys.modules, name)
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)

    return without


@pytest.fixture
def without_core(monkeypatch):
    """Run as in a checkout whose native core is not built."""
    monkeypatch.setattr("arenite.strategies.base.native.core", None)


@pytest.fixture(scope="session")
def sanitised(tmp_path_factory):
    """The folder that fuzz targets are built in; a skip without sanitizers: no target is broken.

    It is that of `make fuzz`, and stays: only what changed is compiled again.
    """
    if shutil.which("g++") is None or shutil.which("make") is None:
        pytest.skip("g++ and make are needed to build the fuzz target")
    folder = tmp_path_factory.mktemp("sanitised")
    probe = folder / "probe.cpp"
    probe.write_text("int main() { return 0; }\n")
    command = ["g++", "-fsanitize=address,undefined", probe, "-o", folder / "probe"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("g++ has no address and undefined-behaviour sanitizers here")
    return Path(__file__).parents[1] / "build"
