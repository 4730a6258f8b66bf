"""Cases of one operator, and their outcomes: imported, planned, built, and run by a runtime."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.targets.compiling import Compiled, compile_model
from arenite.planner.errors import AreniteError
from arenite.planner.importers import load
from arenite.planner.placement.verification import verify
from arenite.planner.programs.rules import Rules
from arenite.planner.rewrites.derivation import derive
from arenite.runtime import Session
from arenite.runtime.lowering import UnsupportedOperatorsError
from arenite.runtime.program import program_pieces
from arenite.strategies import find

Array: TypeAlias = NDArray[Any]
Reference: TypeAlias = Callable[[], Sequence[Array] | None]
"""Returns outputs that are right, None if it has none after all."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model of one operator.

    Attributes:
        operator: Its name, the domain in front unless that is ONNX's own.
        name: What this case shows of it.
        suffix: Of its file.
        model: The file's bytes.
        feeds: Input arrays by name, or in the model's order where the format numbers them; None
            where an input is no array, so that nothing can be fed.
        expected: Return the outputs that the operator must give, the definition's first; to agree
            with one is enough. None where nobody can foretell them.
        types: Element types that the case is about, for the table.
        rtol: Largest relative difference of a number.
        atol: Largest difference, in addition.
    """

    operator: str
    name: str
    suffix: str
    model: bytes
    feeds: dict[str, Array] | list[Array] | None
    expected: tuple[Reference, ...]
    types: tuple[str, ...] = ()
    rtol: float = 1e-3
    atol: float = 1e-5


_NOTE = re.compile(r"^operators left to ONNX Runtime: .*?\((.*)\)$")
_PLACE = find("greedy-by-size")


class Result(StrEnum):
    """Who ran the operator."""

    NATIVE = "native"
    """Our own runtime alone."""
    FOLDED = "folded"
    """Nobody: its result is known before the run."""
    ONNXRUNTIME = "onnxruntime"
    """ONNX Runtime, as a step of our program."""
    REFUSED = "refused"
    """Nobody: it is refused with a reason before a file exists."""
    WRONG = "wrong"
    """Somebody, and the outputs differ, or it failed as nothing may."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case.

    Attributes:
        case: The case.
        imported: Whether the importer reads it.
        planned: Whether the graph as written is planned.
        result: Who ran it.
        reason: Why it is not native, or what is wrong; empty if nothing is.
    """

    case: Case
    imported: bool
    planned: bool
    result: Result
    reason: str = ""


def outcome_of(case: Case, folder: Path) -> Outcome:
    """Put a case through import, plan, build and run."""
    path = folder / f"case{case.suffix}"
    path.write_bytes(case.model)
    imported = planned = False
    try:
        program = load(path)
        imported = True
        problem = derive(program, Rules()).problem
        verify(problem, _PLACE(problem))
        planned = True
        compiled = compile_model(path)
        plan = _PLACE(compiled.source.problem)
        pieces = list(program_pieces(compiled.assemble(plan)))
        with Session.of_pieces(pieces, case.name) as session:
            result, reason = _judged(case, session, compiled)
    except UnsupportedOperatorsError as error:
        result, reason = Result.REFUSED, error.operators[0][2]
    except AreniteError as error:
        result, reason = Result.REFUSED, str(error).removeprefix(f"{path}: ")
    except Exception as error:  # whatever else it is, it is a defect to tell of
        result, reason = Result.WRONG, f"{type(error).__name__}: {error}"
    return Outcome(case, imported, planned, result, reason)


def _judged(case: Case, session: Session, compiled: Compiled) -> tuple[Result, str]:
    """Run a case and return who ran it, with the reason."""
    if case.feeds is None:
        return Result.WRONG, "it was built, though its inputs are no arrays"
    feeds = case.feeds
    if isinstance(feeds, list):
        feeds = {port.name: each for port, each in zip(session.inputs, feeds, strict=True)}
    made = list(session.run({port.name: feeds[port.name] for port in session.inputs}).values())
    if what := _disagreement(case, made):
        return Result.WRONG, what
    backends = session.backends()
    if "onnxruntime" in backends:
        return Result.ONNXRUNTIME, _fallback(compiled.program.notes)
    return (Result.NATIVE if backends else Result.FOLDED), ""


def _disagreement(case: Case, made: Sequence[Array]) -> str:
    """Return how outputs differ from what is expected first, empty if they agree with any."""
    found = ""
    for expected in case.expected:
        outputs = expected()
        what = "nothing to compare with" if outputs is None else difference(case, made, outputs)
        if not what:
            return ""
        found = found or what
    return found


def difference(case: Case, made: Sequence[Array], expected: Sequence[Array]) -> str:
    """Return how outputs differ, empty if they do not."""
    for ours, theirs in zip(made, expected, strict=True):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{ours.dtype}{ours.shape} for {theirs.dtype}{theirs.shape}"
        own, other = _numbers(ours), _numbers(theirs)
        if not np.allclose(own, other, rtol=case.rtol, atol=case.atol, equal_nan=True):
            both = np.isfinite(own) & np.isfinite(other)
            return f"off by {np.max(np.abs(own - other)[both], initial=0):.3g}"
    return ""


def _numbers(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _fallback(notes: Iterable[str]) -> str:
    """Return why a step was left to ONNX Runtime, as the program's notes tell it."""
    return next((match[1] for note in notes if (match := _NOTE.match(note))), "")
