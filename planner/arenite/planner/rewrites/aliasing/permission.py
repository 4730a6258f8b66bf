"""Leave for results to reach into their operands, for a strategy to take."""

from dataclasses import replace

from arenite.planner.graph import Graph, TensorKind
from arenite.planner.problem import PermittedOverlap, Problem, UsageRecord
from arenite.planner.rewrites.aliasing.overlap import permitted_overlap


def permit_overlaps(graph: Graph, problem: Problem) -> Problem:
    """Return the records of `graph` with the overlaps that its operators bear.

    A result may reach into the operand of `permitted_overlap` if its storage begins at that
    step and the operand's ends there. Only for targets whose kernels are naive.

    Args:
        graph: Ordered, storage shared.
        problem: Its records.

    Cost: O(tensors + the operators' own).
    """
    by_name = {record.name: record for record in problem.records}
    records = dict(by_name)
    kept = {graph.root(name)[0] for name in graph.outputs}
    kept.update(name for name, tensor in graph.tensors.items() if tensor.kind is TensorKind.STATE)
    for step, operator in enumerate(graph.operators):
        permitted = permitted_overlap(graph, operator)
        if not permitted:
            continue
        source, result = operator.inputs[0], operator.outputs[0]
        (above, source_offset), (below, result_offset) = graph.root(source), graph.root(result)
        reads = [graph.root(name)[0] for name in operator.reads]
        operand, written = by_name.get(above), by_name.get(below)
        if operand is None or written is None or reads.count(above) > 1 or above == below:
            continue
        if above in kept or operand.end != step + 1 or written.start != step:
            continue
        distance = graph.tensors[result].size - permitted - source_offset + result_offset
        size = min(written.size - distance, written.size - 1, operand.size - 1)
        if size >= 1:
            records[below] = _permitting(records[below], PermittedOverlap(above, size))
    return replace(problem, records=tuple(records.values()))


def _permitting(record: UsageRecord, overlap: PermittedOverlap) -> UsageRecord:
    return replace(record, overlaps=(*record.overlaps, overlap))
