"""From an ONNX file to a graph."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from arenite.planner.graph import Graph, Operator, Tensor, TensorKind
from arenite.planner.importers.onnx.binding import bind
from arenite.planner.importers.onnx.file import load_model
from arenite.planner.importers.onnx.order import live_operators
from arenite.planner.importers.onnx.walk import Walk
from arenite.planner.rewrites.noops import drop_noops

_HIDDEN = {"If": "branches are", "Loop": "body is", "Scan": "body is"}


def read(path: Path, dims: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """Return the graph of the file; see `read_onnx`."""
    model = load_model(path)
    binding = bind(path, model.graph, dims, shapes)
    walk = Walk(path, model, binding)
    walked = walk.run()
    outputs = tuple(dict.fromkeys(output.name for output in model.graph.output))
    operators = live_operators(walked, outputs)
    graph = Graph.of(
        name=path.stem,
        tensors=_tensors(walk, operators, tuple(binding.inputs), outputs),
        operators=operators,
        inputs=tuple(binding.inputs),
        outputs=outputs,
        notes=_notes(walk, operators, walk.num_dead + len(walked) - len(operators)),
    )
    return drop_noops(graph)


def _tensors(
    walk: Walk, operators: Sequence[Operator], inputs: Sequence[str], outputs: Sequence[str]
) -> list[Tensor]:
    kinds = dict.fromkeys(outputs, TensorKind.OUTPUT)
    kinds.update(dict.fromkeys(walk.constants, TensorKind.CONSTANT))
    kinds.update(dict.fromkeys(inputs, TensorKind.INPUT))
    used = [name for operator in operators for name in (*operator.reads, *operator.writes)]
    return [
        Tensor(name, *walk.types[name], kinds.get(name, TensorKind.ACTIVATION))
        for name in dict.fromkeys((*inputs, *used, *outputs))
    ]


def _notes(walk: Walk, operators: Sequence[Operator], num_dead: int) -> list[str]:
    notes = [
        f"{operator.op_type} {operator.name!r}: its {_HIDDEN[operator.op_type]} not planned; "
        f"{operator.scratch:,} B reserved"
        for operator in operators
        if operator.op_type in _HIDDEN
    ]
    if walk.num_folded:
        notes.append(f"operators left out because they make constants only: {walk.num_folded}")
    if num_dead:
        notes.append(f"operators left out because they reach no output: {num_dead}")
    return notes
