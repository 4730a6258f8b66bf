"""Turn a program into a problem: order the steps, share storage, collect the records."""

from collections.abc import Sequence
from dataclasses import dataclass

from arenite.planner.errors import UnsupportedModelError
from arenite.planner.placement.problem import Problem, load_spans
from arenite.planner.programs.ordering import FindOrder, Order
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import AliasKind, Rules
from arenite.planner.rewrites.aliasing.overlap import permit_overlaps
from arenite.planner.rewrites.aliasing.rewrite import has_parts, share
from arenite.planner.rewrites.anchoring import anchor
from arenite.planner.rewrites.keeping_rows import keep_rows, keepable


@dataclass(frozen=True, slots=True)
class Derivation:
    """A program ready to be placed.

    Attributes:
        program: The program, its steps in their final order and its storage shared.
        problem: The records of that program.
        order: The result of the search for an order; None if the order was given.
        unshared: The program in its final order, none of its storage shared; None if it is not
            known.
    """

    program: Program
    problem: Problem
    order: Order | None = None
    unshared: Program | None = None


def derive(
    program: Program, rules: Rules, order: FindOrder | Sequence[str] | None = None
) -> Derivation:
    """Return a program's records, with the reordered and sharing program they describe.

    Args:
        order: Step names in order, or a function that finds an order; by default the
            program's own order.

    Raises:
        OrderError: The steps cannot run in the order given.
        UnsupportedModelError: A search is asked for, but the steps must keep their order.
    """
    found: Order | None = None
    shared: Program | None = None
    if callable(order):
        _check_reorderable(program)
        found, shared = _found(program, rules, order)
        order = found.steps
    if order is not None:
        program = program.reordered(order)
    unshared = program
    program = shared or _shared(program, rules)
    if program.dimensions and rules.outlines:
        program, problem = _along_sizes(program, rules)
    else:
        problem = records(program, rules)
    if AliasKind.OVERLAP in rules.aliases:
        problem = permit_overlaps(program, problem)
    return Derivation(program, problem, found, unshared)


def _along_sizes(program: Program, rules: Rules) -> tuple[Program, Problem]:
    """Return a program in bands, its rows placed for all sizes of a range, and its records.

    Tensors keep the rows of the highest sizes only where that lowers the load: kernels take a
    tensor in one piece a little quicker.
    """
    anchored = anchor(program)
    problem = records(anchored, rules)
    roots = keepable(program, rules.by_rows)
    if not roots:
        return anchored, problem
    everywhere = anchor(keep_rows(program, rules.by_rows, roots))
    least = records(everywhere, rules)
    if least.lower_bound >= problem.lower_bound:
        return anchored, problem
    above = [span for span in load_spans(problem.records) if span.load > least.lower_bound]
    few = roots & {
        name
        for record in problem.records
        if any(span.start < record.end and record.start < span.end for span in above)
        for name in record.tensors
    }
    at_peaks = anchor(keep_rows(program, rules.by_rows, few))
    found = records(at_peaks, rules)
    if found.lower_bound > least.lower_bound:
        return everywhere, least
    return at_peaks, found


def _check_reorderable(program: Program) -> None:
    for step in program.steps:
        if step.operator.fixes_order:
            raise UnsupportedModelError(
                step.name,
                "the steps of a subgraph run between its entry and its exit; keep the given order",
            )


def _found(program: Program, rules: Rules, find_order: FindOrder) -> tuple[Order, Program | None]:
    """Return the order found, or the program's own if that is better once parts of tensors share.

    A search counts every part of a tensor as separate storage; which parts lie inside the
    whole is decided afterwards, for the order found. So the peak it states is only an upper
    bound, and its lower bound does not hold. The program in its order, storage shared, is
    returned where it was made for that.
    """
    found = find_order(program, rules)
    if not has_parts(program, rules.aliases):
        return found, None
    given = tuple(step.name for step in program.steps)
    tried = [
        (steps, _shared(program.reordered(steps), rules))
        for steps in dict.fromkeys((found.steps, given))
    ]
    peaks = [records(shared, rules).lower_bound for _, shared in tried]
    least = min(range(len(tried)), key=peaks.__getitem__)
    steps, shared = tried[least]
    return Order(steps, peaks[least], lower_bound=0), shared


def _shared(program: Program, rules: Rules) -> Program:
    return share(program, rules.aliases, rules.boundary, rules.alignment)


def records(program: Program, rules: Rules) -> Problem:
    """Return the records of a program whose storage is shared already."""
    return liveness(
        program,
        boundary=rules.boundary,
        alignment=rules.alignment,
        capacity=rules.capacity,
        outlines=rules.outlines,
    )
