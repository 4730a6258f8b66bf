"""Files of arrays as inputs: whole, named, missing, twice, and damaged in every way."""

import io
import os
import resource
import zipfile

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.cli.commands.run.feeds import FEED, Feed, InputFileError, read_feeds
from arenite.cli.commands.run.images import Normalisation
from arenite.runtime import InputNameError, SessionPort

PLAIN = Normalisation((0.0,), (1.0,))


def port(name, shape=(2, 3), dtype=np.float32):
    return SessionPort(name, np.dtype(dtype), shape, np.zeros(shape, dtype))


A, B = port("a"), port("b")
ONES, TWOS = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)


@pytest.fixture
def file(tmp_path):
    """Write what is given to a file: an array, arrays by name, or bytes."""

    def file(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, dict):
            np.savez(path, **content)
        else:
            np.save(path, content)
        return path

    return file


def converted(text):
    return FEED.convert(str(text), None, None)


def test_a_name_stands_before_the_file(file):
    assert converted("a=cat.npy") == Feed(converted("cat.npy").path, "a")
    assert converted("a=b=cat.npy").name == "a=b"
    path = file("x=1.npy", ONES)
    assert converted(path) == Feed(path)


@pytest.mark.parametrize("text", ["=cat.npy", "a="])
def test_a_name_without_a_file_is_refused(text):
    with pytest.raises(click.BadParameter, match="NAME=FILE"):
        converted(text)


def test_the_only_input_needs_no_name(file):
    fed = read_feeds([Feed(file("x.npy", ONES))], [A], PLAIN)
    np.testing.assert_array_equal(fed["a"], ONES)


def test_an_archive_names_the_inputs(file):
    path = file("x.npz", {"b": TWOS, "a": ONES})
    fed = read_feeds([Feed(path)], [A, B], PLAIN)
    np.testing.assert_array_equal(fed["a"], ONES)
    np.testing.assert_array_equal(fed["b"], TWOS)
    named = read_feeds([Feed(path, "a"), Feed(path, "b")], [A, B], PLAIN)
    np.testing.assert_array_equal(named["b"], TWOS)


def test_an_array_alone_in_its_archive_is_fed_under_any_name(file):
    fed = read_feeds([Feed(file("x.npz", {"arr_0": ONES}), "a")], [A], PLAIN)
    np.testing.assert_array_equal(fed["a"], ONES)


def test_an_archive_without_the_array_says_what_it_holds(file):
    path = file("x.npz", {"c": ONES, "d": ONES})
    with pytest.raises(InputFileError, match="no array 'a'; it holds 'c', 'd'"):
        read_feeds([Feed(path, "a")], [A], PLAIN)


def test_an_unnamed_file_for_several_inputs_is_not_guessed(file):
    with pytest.raises(click.UsageError, match="NAME=FILE: a, b"):
        read_feeds([Feed(file("x.npy", ONES))], [A, B], PLAIN)


def test_an_input_is_fed_once(file):
    path = file("x.npy", ONES)
    with pytest.raises(click.UsageError, match="'a' is given twice"):
        read_feeds([Feed(path, "a"), Feed(path, "a")], [A, B], PLAIN)


def test_an_input_that_the_model_lacks_is_refused(file):
    with pytest.raises(InputNameError, match="'c' is not an input of the model; inputs: 'a'"):
        read_feeds([Feed(file("x.npy", ONES), "c")], [A], PLAIN)


def test_missing_inputs_are_listed_with_what_they_take(file):
    scalar = port("s", (), np.int64)
    with pytest.raises(click.UsageError, match="for: b=float32 2x3, s=int64 scalar"):
        read_feeds([Feed(file("x.npy", ONES), "a")], [A, B, scalar], PLAIN)


@pytest.mark.parametrize("files", [[], ["x.npy"]])
def test_names_of_inputs_are_listed_without_what_a_terminal_acts_on(file, files):
    feeds = [Feed(file(name, ONES)) for name in files]
    with pytest.raises(click.UsageError) as refused:
        read_feeds(feeds, [port("a\x1b[31m"), B], PLAIN)
    assert "a\\x1b[31m" in refused.value.message
    assert "\x1b" not in refused.value.message


def test_a_model_without_inputs_needs_no_file():
    assert read_feeds([], [], PLAIN) == {}


def npy(array=ONES):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz(compressed=False):
    stream = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(stream, a=np.arange(300.0), b=np.arange(5))
    return stream.getvalue()


def member(name, content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"", "not the contents of .npy or .npz"),
        (b"a,b\n1,2\n", "not the contents of .npy or .npz"),
        (npy()[:-1], "is damaged"),
        (npy()[:20], "is damaged"),
        (npy().replace(b"}", b"("), "is damaged"),  # a bracket that never closes
        (npz()[:200] + npz()[220:], "cannot be read"),
        (npz(compressed=True).replace(b"\x08\x00", b"\x63\x00"), "is damaged"),  # method 99
        (member("a.npy", b"text"), "'a' is not an array"),
    ],
)
def test_a_file_that_holds_no_arrays_is_refused(tmp_path, content, message):
    path = tmp_path / "x.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputFileError, match=message):
        read_feeds([Feed(path, "a")], [A], PLAIN)


def test_objects_are_never_unpickled(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([print], object), allow_pickle=True)
    with pytest.raises(InputFileError, match="Object arrays cannot be loaded"):
        read_feeds([Feed(path)], [A], PLAIN)


def test_a_folder_is_no_array(tmp_path):
    with pytest.raises(InputFileError, match="cannot be read"):
        read_feeds([Feed(tmp_path)], [A], PLAIN)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_may_have_no_end_is_not_opened(tmp_path, kind):
    path = tmp_path / "endless.npy"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(InputFileError, match="is not a regular file"):
        read_feeds([Feed(path)], [A], PLAIN)


@given(
    st.sampled_from([npy(), npz(), npz(compressed=True)]),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_whatever_is_damaged_is_read_or_refused(tmp_path_factory, content, changes):
    damaged = bytearray(content)
    for place, byte in changes:
        damaged[place % len(damaged)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(damaged)
    try:
        fed = read_feeds([Feed(path, "a")], [A], PLAIN)
    except InputFileError:
        return
    assert isinstance(fed["a"], np.ndarray)


@pytest.mark.parametrize("kind", ["array", "archive"])
def test_what_is_larger_than_any_input_is_refused_before_it_is_read(tmp_path, kind):
    """Sparse, or packed: a small file on the disk, and gigabytes in memory."""
    path = tmp_path / "huge.npy"
    with path.open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 30,)}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate((1 << 32) + 128)
    if kind == "archive":
        path = tmp_path / "huge.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.npy", bytes(3 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputFileError, match="the largest input of the model takes 24 B"):
        read_feeds([Feed(path)], [A], PLAIN)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
