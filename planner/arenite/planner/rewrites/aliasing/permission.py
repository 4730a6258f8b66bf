"""Permission for results to overlap their operands, which strategies may use."""

from dataclasses import replace

from arenite.planner.problem import PermittedOverlap, Problem, UsageRecord
from arenite.planner.program import Program
from arenite.planner.rewrites.aliasing.overlap import permitted_overlap
from arenite.planner.tensors import TensorKind


def permit_overlaps(program: Program, problem: Problem) -> Problem:
    """Return the problem with the overlaps that the program's operators allow.

    A result may overlap its operand as far as `permitted_overlap` says if its storage begins
    at that step and the operand's ends there, and neither has an outline. Only for targets
    with naive kernels.

    Args:
        program: The program in its final order, with storage shared.
        problem: The records of that program.

    Cost: O(tensors), and the cost of `permitted_overlap` for each operator.
    """
    by_name = {record.name: record for record in problem.records}
    records = dict(by_name)
    kept = {program.root(name)[0] for name in program.output_tensors}
    kept.update(n for n, tensor in program.tensors.items() if tensor.kind is TensorKind.STATE)
    for number, step in enumerate(program.steps):
        permitted = permitted_overlap(program, step)
        if not permitted:
            continue
        source, result = step.inputs[0], step.outputs[0]
        (above, source_offset), (below, result_offset) = program.root(source), program.root(result)
        reads = [program.root(name)[0] for name in step.reads]
        operand, written = by_name.get(above), by_name.get(below)
        if operand is None or written is None or reads.count(above) > 1 or above == below:
            continue
        if operand.outline or written.outline:
            continue
        if above in kept or operand.end != number + 1 or written.start != number:
            continue
        distance = program.tensors[result].size - permitted - source_offset + result_offset
        size = min(written.size - distance, written.size - 1, operand.size - 1)
        if size >= 1:
            records[below] = _permitting(records[below], PermittedOverlap(above, size))
    return replace(problem, records=tuple(records.values()))


def _permitting(record: UsageRecord, overlap: PermittedOverlap) -> UsageRecord:
    return replace(record, overlaps=(*record.overlaps, overlap))
