"""Programs in bands, into plan files and from them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from arenite.planner import Candidate, Derivation, Problem, Program, Rules, Step, derive
from arenite.planner.errors import OrderError
from arenite.planner.operators import Strips
from arenite.planner.planfile import Bands, RegionOf, StripsOf
from arenite.planner.programs import PCIE, RowStep, run_of
from arenite.strategies.bands.regions import Region, Regions
from arenite.strategies.bands.search import InBands, run_in_bands
from arenite.strategies.bands.strips import fuse


def describe_bands(program: Program, candidate: Candidate) -> Bands:
    """Return the description of a program in bands, for a plan file.

    Args:
        candidate: The program in bands.
    """
    in_bands = InBands.of(candidate)
    steps = in_bands.base.steps
    return Bands(
        tuple(step.name for step in program.steps),
        tuple(
            StripsOf(step.operator.layers[0].name, step.name, _columns(step.operator))
            for step in steps
            if isinstance(step.operator, Strips)
        ),
        tuple(
            RegionOf(
                steps[each.start].name,
                steps[each.stop - 1].name,
                each.rows,
                each.inner_rows,
                each.columns,
            )
            for each in in_bands.regions
        ),
        run_of(candidate.program, candidate.problem, candidate.plan),
    )


def _columns(operator: Strips) -> int:
    return operator.strips[0].layers[-1].result.shape[2]


def rebuild_bands(
    program: Program,
    bands: Bands,
    problem: Problem,
    rules: Rules,
    is_allowed: Callable[[RowStep], bool],
) -> Derivation:
    """Return the program in bands that a plan file states.

    Args:
        program: The program that runs whole, in any order.
        problem: Records of the plan file: they say whether results lie over what they replace.
        is_allowed: Whether a step that could run row by row may.

    Raises:
        OrderError: The program has other steps, or some of them cannot run so.
    """
    program = program.reordered(bands.order)
    for strips in bands.strips:
        start, stop = _ends(program.steps, strips.first, strips.last)
        fused = fuse(program, start, stop, strips.columns)
        if fused is None:
            raise OrderError(f"steps {strips.first!r} to {strips.last!r} cannot run in strips")
        program = fused
    regions = Regions(
        program, PCIE, lambda each: isinstance(each.step.operator, Strips) or is_allowed(each)
    )  # any costs: turns do not depend on them
    chosen: list[Region] = []
    for each in bands.regions:
        start, stop = _ends(program.steps, each.first, each.last)
        if any(step is None for step in regions.steps[start:stop]):
            raise OrderError(f"steps {each.first!r} to {each.last!r} cannot run in bands")
        if stop not in regions.stops_after(start):
            raise OrderError(f"too many steps in bands, {each.first!r} to {each.last!r}")
        if each.columns and each.columns not in regions.widths(start, stop):
            raise OrderError(
                f"steps {each.first!r} to {each.last!r} cannot run in strips of {each.columns} "
                "columns"
            )
        chosen.append(Region(start, stop, each.rows, each.inner_rows, each.columns))
    counted = replace(rules, outlines=True, by_rows=regions.by_rows)
    apart, laid = (
        derive(run_in_bands(regions, chosen, lays_over=each), counted) for each in (False, True)
    )
    replaced = _names(apart.problem) - _names(laid.problem)
    return laid if replaced.isdisjoint(_names(problem)) else apart


def _names(problem: Problem) -> set[str]:
    return {record.name for record in problem.records}


def _ends(steps: Sequence[Step], first: str, last: str) -> tuple[int, int]:
    """Return the index of a step, and that after another."""
    places = {step.name: index for index, step in enumerate(steps)}
    if not places.get(first, len(places)) <= places.get(last, -1):
        raise OrderError(f"there are no steps {first!r} to {last!r}")
    return places[first], places[last] + 1
