"""Copies of a module with one piece of its source changed, and what changed in which lines."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


class StaleMutationError(AssertionError):
    """The text that a mutation replaces is not there, or not just once."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break a rule, and the test that must notice.

    Attributes:
        rule: What is broken, in words.
        old: Text of the source, which is there once.
        new: What stands in its place.
        test: Name of a function that must fail, with a case in brackets if it takes one.
    """

    rule: str
    old: str
    new: str
    test: str

    def applied(self, source: str) -> str:
        """Return the source with the rule broken.

        Raises:
            StaleMutationError: The source has changed, so that this breaks nothing.
        """
        if (count := source.count(self.old)) != 1:
            raise StaleMutationError(
                f"{self.rule!r}: {self.old!r} is {count} times in the source; "
                "write the mutation anew for what stands there now"
            )
        return source.replace(self.old, self.new)

    def lines(self, source: str) -> range:
        """Return the lines that it changes, counted from 1."""
        begin = source.index(self.old)
        first = source.count("\n", 0, begin) + 1
        return range(first, first + self.old.count("\n") + 1)


def copy_of(module: ModuleType, source: str) -> ModuleType:
    """Return a module of another source, whose errors are those of the original.

    Tests that expect an error class of the original then judge the copy too.
    """
    copy = ModuleType(module.__name__)
    # Dataclasses look their module up by name, and find the original, which serves.
    exec(compile(source, f"a mutant of {module.__name__}", "exec"), copy.__dict__)
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, Exception):
            setattr(copy, name, value)
    return copy


def source_of(module: ModuleType) -> str:
    """Return the text of a module."""
    assert module.__file__ is not None
    return Path(module.__file__).read_text(encoding="utf-8")


def deciding_lines(source: str) -> Iterator[int]:
    """Yield the lines in which a function decides: comparisons, conditions and refusals."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.If, ast.While, ast.IfExp)):
                yield node.test.lineno
            elif isinstance(node, (ast.Compare, ast.BoolOp)):
                yield node.lineno
