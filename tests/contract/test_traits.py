"""What an operator means is asked of the operator: nobody goes by its name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "planner/arenite/planner/rewrites",
    "runtime/arenite/runtime/rewrites",
    "strategies/arenite/strategies",
)
NAMES = {"label", "op_type"}


def asked_by_name(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that compare an operator's name, look it up, or take it apart."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                asking: list[ast.expr] = [left, *others]
            case ast.Match(subject=subject):
                asking = [subject]
            case ast.Subscript(slice=key):
                asking = [key]
            case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]):
                asking = [key]
            case ast.Attribute(value=ast.Attribute() as value):
                asking = [value]
            case _:
                continue
        if any(
            isinstance(each, ast.Attribute) and each.attr in NAMES
            for expression in asking
            for each in ast.walk(expression)
        ):
            yield node.lineno


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_rewrite_and_no_strategy_asks_for_an_operators_name(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    found = {path.name: list(asked_by_name(ast.parse(path.read_bytes()))) for path in paths}
    assert not {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize(
    "text",
    [
        'step.operator.label == "Relu"',
        "operator.op_type in NAMES",
        "TABLE[step.operator.label]",
        "TABLE.get(operator.op_type)",
        "step.operator.label.isupper()",
    ],
)
def test_asking_is_noticed(text: str) -> None:
    assert list(asked_by_name(ast.parse(text)))
