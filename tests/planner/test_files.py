import hashlib

import pytest

from arenite.planner.files import model_digest, write_atomically


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "plan.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "plan.json"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")  # type: ignore[arg-type]  # the failure wanted
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "absent" / "plan.json", b"")


def test_the_digest_is_that_of_the_bytes(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"arenite" * 100_000)
    assert model_digest(path) == hashlib.sha256(b"arenite" * 100_000).hexdigest()
