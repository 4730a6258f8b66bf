import importlib
import inspect
import re
from pathlib import Path

import pytest

from arenite.planner.errors import (
    AreniteError,
    BindingError,
    FileError,
    InfeasibleError,
    InvalidPlanError,
    MissingDataError,
    MissingDependencyError,
    ModelFormatError,
    PlanFileError,
    SearchLimitError,
    SizeLimitError,
    UnboundDimensionError,
    UnknownConstantError,
    UnknownStrategyError,
    UnsupportedModelError,
    UnsupportedProblemError,
    about_file,
    named_instead,
)

MODULES = (
    "arenite.planner.errors",
    "arenite.planner.placement.verification",
    "arenite.planner.planfile.errors",
)
BRANCH = re.compile(r"(?P<indent>[ │]*)(?:[├└]── )?(?P<name>\w+Error)\b.*")


def drawn_tree(docstring):
    """Return the parent of each class in the tree that the docstring draws."""
    parents = {}
    path = []
    for line in docstring.splitlines():
        match = BRANCH.fullmatch(line)
        if match is None:
            continue
        depth = 0 if "──" not in line else len(match["indent"]) // 4
        path[depth:] = [match["name"]]
        parents[match["name"]] = path[depth - 1] if depth else None
    return parents


@pytest.mark.parametrize("name", MODULES)
def test_the_tree_in_the_docstring_is_the_tree_of_the_classes(name):
    module = importlib.import_module(name)
    defined = {
        found.__name__: found.__base__.__name__
        for found in vars(module).values()
        if inspect.isclass(found) and found.__module__ == name and found.__name__[0] != "_"
    }
    drawn = drawn_tree(module.__doc__)
    root = next(iter(drawn))
    assert {child: parent for child, parent in drawn.items() if parent} == {
        child: parent for child, parent in defined.items() if child != root
    }


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModelFormatError("truncated", path="m.onnx"), "m.onnx: truncated"),
        (UnsupportedModelError("loop", "no size", path="m.onnx"), "m.onnx: 'loop': no size"),
        (
            UnboundDimensionError(["n", "t"], "give --dim", path="m.onnx"),
            "m.onnx: free dimensions 'n', 't'; give --dim",
        ),
        (BindingError("n", "is not free", path="m.onnx"), "m.onnx: 'n' is not free"),
        (UnknownConstantError("w", "it is sparse", path="m"), "m: constant 'w': it is sparse"),
        (
            MissingDataError("w", "'w.bin' is missing", path="m"),
            "m: constant 'w': 'w.bin' is missing; --target generic plans the graph as written "
            "without it",
        ),
        (
            MissingDependencyError("onnx", "onnx", "reading m.onnx"),
            "reading m.onnx needs the package 'onnx'; install it with: "
            "pip install 'arenite[onnx]'",
        ),
        (
            InfeasibleError(100, 124),
            "no plan fits 100 B: every plan needs at least 124 B; raise the capacity, or "
            "let `arenite fit` change how the model runs",
        ),
        (SearchLimitError("stopped after 5 s", 100), "stopped after 5 s"),
        (
            SizeLimitError("tensor 'x' takes 4096 B", "x", 4096, 1024),
            "tensor 'x' takes 4096 B; supported: less than 2^10",
        ),
        (InvalidPlanError("a and b overlap", ["a", "b"]), "a and b overlap"),
        (
            UnsupportedProblemError("mine", "takes no fixed offsets"),
            "strategy 'mine' takes no fixed offsets; try --strategy best",
        ),
        (UnknownStrategyError("x", ["a", "b"]), "unknown strategy 'x'; known: a, b"),
        (PlanFileError("not JSON", path="p.json"), "p.json: not JSON"),
    ],
)
def test_a_message_says_what_and_where(error, message):
    assert str(error) == message


@pytest.mark.parametrize("name", MODULES)
def test_every_deliberate_error_can_be_caught_as_one(name):
    for found in vars(importlib.import_module(name)).values():
        is_ours = inspect.isclass(found) and found.__module__ == name
        if is_ours and found.__name__[0] != "_":
            assert issubclass(found, AreniteError)


def test_the_facts_of_an_error_are_fields():
    assert (InfeasibleError(100, 124).capacity, InfeasibleError(100, 124).lower_bound) == (
        100,
        124,
    )
    too_large = SizeLimitError("", "x", 4096, 1024)
    assert (too_large.culprit, too_large.size, too_large.limit) == ("x", 4096, 1024)
    assert InvalidPlanError("overlap", ["a", "b"]).records == ("a", "b")
    assert UnknownStrategyError("x", ["a"]).known == ("a",)
    assert UnknownConstantError("w", "").tensor == "w"
    assert UnboundDimensionError(["n"], "").dimensions == ("n",)
    assert MissingDependencyError("onnx", "onnx", "x").extra == "onnx"


def test_the_reader_of_a_file_adds_its_path_once():
    with (
        pytest.raises(ModelFormatError) as caught,
        about_file("outer.onnx"),
        about_file("inner.onnx"),
    ):
        raise ModelFormatError("truncated")
    assert str(caught.value) == "inner.onnx: truncated"
    assert (caught.value.path, caught.value.reason) == ("inner.onnx", "truncated")


def test_what_is_not_about_a_file_is_left_as_it_is():
    with pytest.raises(SearchLimitError, match=r"\Astopped\Z"), about_file("m.onnx"):
        raise SearchLimitError("stopped")


def test_a_file_made_of_another_is_named_after_it():
    made, origin = Path("folder") / "model.arena", Path("m.onnx")
    for raised, named in ((made, "m.onnx"), ("other.onnx", "other.onnx"), (None, None)):
        with pytest.raises(FileError) as caught, named_instead(made, origin):
            raise FileError("bad", path=raised)
        assert str(caught.value) == ("bad" if named is None else f"{named}: bad")


def test_an_error_about_no_file_says_the_reason_alone():
    assert str(ModelFormatError("truncated")) == "truncated"
