"""Names of classes and the best scores."""

import numpy as np
import pytest

from arenite.cli.commands.run.classes import LabelsError, check_labels, likeliest, read_labels
from arenite.runtime import SessionPort


@pytest.fixture
def labels(tmp_path):
    """Make labels of a file with this content."""

    def labels(content):
        path = tmp_path / "labels.txt"
        path.write_bytes(content)
        return read_labels(path)

    return labels


def port(*shape):
    return SessionPort("y", np.dtype(np.float32), shape, np.zeros(shape, np.float32))


def test_names_are_the_lines(labels):
    assert labels(b"cat\ndog\n").names == ("cat", "dog")
    assert labels("\ufeffcat\r\nd\u00f6g\r\n\r\n".encode()).names == ("cat", "d\u00f6g")
    assert labels(b"cat\n\ndog").names == ("cat", "", "dog")


def test_a_background_that_the_model_leaves_out_is_dropped(labels):
    named = labels(b"Background\ncat\ndog\n")
    assert named.of(2) == ("cat", "dog")
    assert named.of(3) == ("Background", "cat", "dog")
    with pytest.raises(LabelsError, match="names 3 classes; the model scores 4"):
        named.of(4)


def test_another_first_line_is_not_dropped(labels):
    with pytest.raises(LabelsError, match="names 3 classes; the model scores 2"):
        labels(b"foreground\ncat\ndog\n").of(2)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "names no class"), (b"\n\n \n", "names no class"), (b"\xff\xfe\x00", "not text")],
)
def test_a_file_that_names_nothing_is_refused(labels, content, message):
    with pytest.raises(LabelsError, match=message):
        labels(content)


def test_a_file_that_is_absent_is_refused(tmp_path):
    with pytest.raises(LabelsError, match="No such file"):
        read_labels(tmp_path / "absent.txt")


@pytest.mark.parametrize("shape", [(1, 3), (3,), (1, 3, 1, 1), (1, 1, 1, 3)])
def test_scores_lie_along_one_axis(labels, shape):
    check_labels(labels(b"a\nb\nc\n"), [port(*shape)])


@pytest.mark.parametrize(
    "ports", [[], [port()], [port(1, 1)], [port(2, 3)], [port(1, 3), port(1, 3)], [port(1, 0)]]
)
def test_other_outputs_are_no_scores(labels, ports):
    with pytest.raises(LabelsError, match="scores no classes"):
        check_labels(labels(b"a\nb\nc\n"), ports)


def test_the_best_come_first_and_the_lower_number_of_equals(labels):
    scores = {"y": np.array([[3, 9, 9, 1]], np.int8)}
    best = likeliest(scores, labels(b"a\nb\nc\nd\n"), 3)
    assert [(each.index, each.label, each.score) for each in best] == [
        (1, "b", 9), (2, "c", 9), (0, "a", 3),
    ]  # fmt: skip


def test_few_scores_look_like_classes_only_with_names():
    assert likeliest({"y": np.zeros((1, 9))}, None, 5) == ()
    assert len(likeliest({"y": np.zeros((1, 10))}, None, 5)) == 5
    assert likeliest({"y": np.zeros((1, 10), bool)}, None, 5) == ()
    assert likeliest({"y": np.zeros((1, 10)), "z": np.zeros(1)}, None, 5) == ()
