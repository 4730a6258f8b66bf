"""Models, plans and lists of records that fuzzers came by: each is read, or refused in a sentence.

They reached lines that no other file reached, or failed once. `test_fuzz` of the runtime takes the
program files and coded weights among them.
"""

import pytest

from arenite.planner import planfile
from arenite.planner.errors import AreniteError, UnboundDimensionError
from arenite.planner.importers import read
from support.fuzz_corpus import KINDS, corpus

SUFFIXES = {"onnx": ".onnx", "tflite": ".tflite", "plan": ".json", "csv": ".csv"}


def is_accepted(kind, path):
    """Read a file; whatever it raises but errors of ours is a fault."""
    try:
        if kind == "plan":
            planfile.read(path)
        else:
            read(path)
    except UnboundDimensionError:
        return is_accepted_with_sizes(path)
    except AreniteError:
        return False
    return True


def is_accepted_with_sizes(path):
    try:
        read(path, dims={"n": 1})
    except AreniteError:
        return False
    return True


@pytest.mark.parametrize("kind", SUFFIXES)
def test_every_file_is_read_or_refused(kind, tmp_path):
    if kind in ("onnx", "tflite"):
        pytest.importorskip(kind)
    accepted = 0
    files = corpus(tmp_path, kind)
    for file in files:
        path = file.with_suffix(SUFFIXES[kind])
        file.rename(path)
        accepted += is_accepted(kind, path)
    assert 0 < accepted < len(files)


def test_every_kind_has_a_folder(tmp_path):
    assert {path.name for path in tmp_path.iterdir()} == set()
    for kind in KINDS:
        assert corpus(tmp_path, kind)
