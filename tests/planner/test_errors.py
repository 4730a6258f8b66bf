import importlib
import inspect
import re

import pytest

from arenite.planner.errors import (
    AreniteError,
    BindingError,
    InfeasibleError,
    InvalidPlanError,
    MissingDependencyError,
    ModelFormatError,
    PlanFileError,
    SearchLimitError,
    UnboundDimensionError,
    UnknownStrategyError,
    UnsupportedModelError,
    UnsupportedProblemError,
)

MODULES = ("arenite.planner.errors", "arenite.planner.verify", "arenite.planner.planfile.errors")
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
        if inspect.isclass(found) and found.__module__ == name
    }
    drawn = drawn_tree(module.__doc__)
    root = next(iter(drawn))
    assert {child: parent for child, parent in drawn.items() if parent} == {
        child: parent for child, parent in defined.items() if child != root
    }


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModelFormatError("m.onnx", "truncated"), "m.onnx: truncated"),
        (UnsupportedModelError("m.onnx", "loop", "no size"), "m.onnx: 'loop': no size"),
        (
            UnboundDimensionError("m.onnx", ["n", "t"], "give --dim"),
            "m.onnx: free dimensions 'n', 't'; give --dim",
        ),
        (BindingError("m.onnx", "n", "is not free"), "m.onnx: 'n' is not free"),
        (
            MissingDependencyError("onnx", "onnx", "reading m.onnx"),
            "reading m.onnx needs the package 'onnx'; install it with: "
            "pip install 'arenite[onnx]'",
        ),
        (
            InfeasibleError(100, 124),
            "no plan fits 100 B: every plan needs at least 124 B; raise the capacity or "
            "rewrite the graph to need less",
        ),
        (SearchLimitError("stopped after 5 s", 100), "stopped after 5 s"),
        (InvalidPlanError("a and b overlap", ["a", "b"]), "a and b overlap"),
        (
            UnsupportedProblemError("mine", "takes no fixed offsets"),
            "strategy 'mine' takes no fixed offsets; try --strategy best",
        ),
        (UnknownStrategyError("x", ["a", "b"]), "unknown strategy 'x'; known: a, b"),
        (PlanFileError("p.json", "not JSON"), "p.json: not JSON"),
    ],
)
def test_a_message_says_what_and_where(error, message):
    assert str(error) == message


@pytest.mark.parametrize("name", MODULES)
def test_every_deliberate_error_can_be_caught_as_one(name):
    for found in vars(importlib.import_module(name)).values():
        if inspect.isclass(found) and found.__module__ == name:
            assert issubclass(found, AreniteError)


def test_the_facts_of_an_error_are_fields():
    assert (InfeasibleError(100, 124).capacity, InfeasibleError(100, 124).lower_bound) == (
        100,
        124,
    )
    assert InvalidPlanError("overlap", ["a", "b"]).records == ("a", "b")
    assert UnknownStrategyError("x", ["a"]).known == ("a",)
    assert UnboundDimensionError("m", ["n"], "").dimensions == ("n",)
    assert MissingDependencyError("onnx", "onnx", "x").extra == "onnx"
