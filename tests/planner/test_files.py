import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from arenite.planner.errors import FileError, OutputError
from arenite.planner.files import model_digest, read_json, write_atomically


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


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "absent" / "plan.json"
    with pytest.raises(OutputError, match="cannot be written: No such file") as caught:
        write_atomically(path, b"")
    assert caught.value.path == path


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "plan.json", tmp_path / "link.json"
    link.symlink_to(target)
    for data in (b"new", b"newer"):  # at first it leads nowhere
        write_atomically(link, data)
        assert link.is_symlink()
        assert target.read_bytes() == data
    assert list(target.parent.iterdir()) == [target]


def test_what_is_no_regular_file_is_left_as_it_is(tmp_path):
    pipe, folder, device = tmp_path / "pipe", tmp_path / "folder", tmp_path / "device"
    os.mkfifo(pipe)
    folder.mkdir()
    device.symlink_to(os.devnull)
    for path in (pipe, folder, device):
        with pytest.raises(OutputError, match="not a regular file"):
            write_atomically(path, b"new")
    assert pipe.is_fifo()
    assert folder.is_dir()
    assert Path(os.devnull).is_char_device()
    assert sorted(tmp_path.iterdir()) == sorted((pipe, folder, device))


def test_standard_output_that_is_a_pipe_is_not_replaced(tmp_path):
    link = tmp_path / "stdout"
    link.symlink_to("/dev/stdout")
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from arenite.planner.files import write_atomically\n"
        "write_atomically(Path(sys.argv[1]), b'new')\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, link],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "not a regular file" in process.stderr
    assert link.is_symlink()
    assert link.readlink() == Path("/dev/stdout")


def test_a_link_that_leads_to_itself_is_refused(tmp_path):
    link = tmp_path / "loop"
    link.symlink_to(link)
    with pytest.raises(OutputError, match="symbolic links"):
        write_atomically(link, b"new")
    assert link.is_symlink()


def test_permissions_are_those_of_a_plain_file(tmp_path):
    new, plain = tmp_path / "new", tmp_path / "plain"
    old_mask = os.umask(0o027)
    try:
        write_atomically(new, b"")
        plain.write_bytes(b"")
    finally:
        os.umask(old_mask)
    assert new.stat().st_mode == plain.stat().st_mode


def test_a_file_that_was_there_keeps_its_permissions(tmp_path):
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new", durable=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every file")
def test_a_read_only_file_is_left_as_it_is(tmp_path):
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(OutputError, match="read-only"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_name_as_long_as_a_name_may_be_can_be_written(tmp_path):
    path = tmp_path / ("n" * 255)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


class MalformedError(FileError):
    """It holds something else."""


class UnreadableError(FileError):
    """It cannot be read."""


def read(path):
    return read_json(path, 1, MalformedError, UnreadableError)


def test_json_is_read_as_it_is(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": [1, 2.5, null, true, "\\u00e9"]}')
    assert read(path) == {"a": [1, 2.5, None, True, "é"]}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON: Expecting value"),
        (b'{"a": 1', "not JSON: Expecting"),
        (b'"\xff"', "its text is not UTF-8"),
        ("[]".encode("utf-16"), "its text is not UTF-8"),
        (b"\xef\xbb\xbf[]", "BOM"),
        (b'["half \\ud800"]', "its text is not UTF-8"),
        (b'{"half \\ud800": 1}', "its text is not UTF-8"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' appears twice in one object"),
        (b"NaN", "NaN is not a finite number"),
        (b"[-Infinity]", "-Infinity is not a finite number"),
        (b"1e999", "1e999 is not a finite number"),
        (b"9" * 5_000, "digits"),
    ],
)
def test_what_is_not_sound_json_is_refused(tmp_path, data, reason):
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(MalformedError, match=reason) as caught:
        read(path)
    assert caught.value.path == path
    assert len(str(caught.value)) < 400


def test_a_large_file_is_refused_and_one_at_the_limit_is_not(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"1".rjust(1 << 20))
    assert read(path) == 1
    path.write_bytes(b"1".rjust((1 << 20) + 1))
    with pytest.raises(UnreadableError, match="larger than 1 MiB"):
        read(path)


def test_json_that_cannot_be_read_is_refused_without_waiting(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path(os.devnull)):
        with pytest.raises(UnreadableError, match=r"not a regular file|Is a directory"):
            read(path)
    with pytest.raises(UnreadableError, match="No such file"):
        read(tmp_path / "absent.json")
    with pytest.raises(MalformedError, match="No such file"):
        read_json(tmp_path / "absent.json", 1, MalformedError)


def test_the_digest_is_that_of_the_bytes(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"arenite" * 100_000)
    assert model_digest(path) == hashlib.sha256(b"arenite" * 100_000).hexdigest()
