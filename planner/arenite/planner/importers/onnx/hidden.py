"""The memory of subgraphs that are not unfolded: planned by itself, reserved as one block."""

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence, Set

from arenite.planner.importers.onnx.types import TensorType
from arenite.planner.liveness import Boundary, liveness
from arenite.planner.problem import Problem
from arenite.planner.program import Program, Step
from arenite.planner.rewrites.noops import drop_noops
from arenite.planner.tensors import Tensor, TensorKind


def height_of(
    steps: Sequence[Step],
    types: Mapping[str, TensorType],
    constants: Set[str],
    *,
    kept: Iterable[str],
    outputs: Sequence[str],
    boundary: Boundary,
) -> int:
    """Return the bytes that hold what the steps of a subgraph make, each tensor while it lives.

    The steps keep their order and their tensors share nothing, whatever the rest of the model
    may share, so that the bytes suffice by any rules. Subgraphs inside count as scratch.

    Args:
        steps: Steps of the subgraph.
        types: Types of all tensors.
        constants: Tensors that take no place: constants, and what lies outside the subgraph.
        kept: Tensors that live throughout: a body is given them, and is given them again.
        outputs: Tensors that the subgraph returns.
        boundary: Whether the outputs are counted.
    """
    kinds = dict.fromkeys(outputs, TensorKind.OUTPUT)
    kinds.update(dict.fromkeys(kept, TensorKind.STATE))
    kinds.update(dict.fromkeys(constants, TensorKind.CONSTANT))
    used = [name for step in steps for name in (*step.reads, *step.writes)]
    names = dict.fromkeys((*kept, *used, *outputs))
    tensors = [
        Tensor(name, *types[name], kinds.get(name, TensorKind.ACTIVATION)) for name in names
    ]
    program = drop_noops(Program.of("subgraph", tensors, steps, (), dict.fromkeys(outputs)))
    return _placed_height(liveness(program, boundary=boundary))


def _placed_height(problem: Problem) -> int:
    """Return the height of a placement: the largest record first, each as low as it can lie.

    The planner imports no strategy, and this height has to suffice, not to be the least.

    Cost: O(n^2) for n records.
    """
    records = sorted(problem.records, key=lambda record: (-record.size, record.start))
    placed: list[tuple[int, int, int, int]] = []
    for record in records:
        offset = 0
        for low, high, start, end in placed:
            if start < record.end and record.start < end and low < offset + record.size:
                offset = max(offset, high)
        insort(placed, (offset, offset + record.size, record.start, record.end))
    return max((high for _, high, _, _ in placed), default=0)
