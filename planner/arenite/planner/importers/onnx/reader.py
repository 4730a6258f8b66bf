"""From an ONNX file to a program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import onnx

from arenite.planner.errors import about_file
from arenite.planner.importers.onnx.binding import bind
from arenite.planner.importers.onnx.branches import walk_if
from arenite.planner.importers.onnx.file import load_model
from arenite.planner.importers.onnx.fixed_inputs import fix_inputs
from arenite.planner.importers.onnx.loops import walk_loop, walk_scan
from arenite.planner.importers.onnx.node import (
    Operand,
    Origin,
    input_name,
    single_node_model,
)
from arenite.planner.importers.onnx.order import live_steps, subgraphs
from arenite.planner.importers.onnx.states import States, placed, take_states
from arenite.planner.importers.onnx.subgraphs import subgraph_model
from arenite.planner.importers.onnx.types import TensorType
from arenite.planner.importers.onnx.values import Constants
from arenite.planner.importers.onnx.walk import Walk
from arenite.planner.operators.imported import Imported
from arenite.planner.operators.operator import Operands
from arenite.planner.program import OperatorSet, Program, Step
from arenite.planner.rewrites.noops import drop_noops
from arenite.planner.tensors import Tensor, TensorKind


@dataclass(frozen=True, slots=True)
class OperatorModel:
    """One operator as a model of its own.

    Attributes:
        model: Bytes of the ONNX file.
        inputs: Tensors of the whole model that it reads, constants excluded.
        outputs: Tensors of the whole model that it writes.
        input_names: Names of the inputs in the file.
        output_names: Names of the outputs in the file.
    """

    model: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


def operator_model(program: Program, step: Step) -> OperatorModel | None:
    """Return a step as a model of its own, its constants inside; None if no node is known.

    Args:
        program: As `read_onnx` returned it.
        step: One of its steps, or another that reads and writes its tensors.

    Raises:
        MissingDataError: Weights of a subgraph lie in a file that is not as stated.
    """
    origin = step.operator.origin if isinstance(step.operator, Imported) else None
    if not isinstance(origin, Origin) or not isinstance(program.constants, Constants):
        return None
    tensors = program.tensors
    operands = [
        Operand(name, TensorType(tensors[name].dtype, tensors[name].shape) if name else None)
        for name in step.inputs
    ]
    values = {
        position: value
        for position, name in enumerate(step.inputs)
        if name
        and tensors[name].kind is TensorKind.CONSTANT
        and (value := program.constants.as_tensor(name)) is not None
    }
    if any(subgraphs(origin.node)):
        model, names = subgraph_model(origin, operands, values, program.constants.folder)
    else:
        model = single_node_model(origin.node, origin.dialect, operands, values)
        names = [input_name(position) for position in range(len(operands))]
    inputs = {
        names[position]: name
        for position, name in enumerate(step.inputs)
        if name and position not in values
    }
    outputs = [name for name in step.outputs if name]
    return OperatorModel(
        model.SerializeToString(),
        tuple(inputs.values()),
        tuple(outputs),
        tuple(inputs),
        tuple(output.name for output in model.graph.output),
    )


_CONTROL_FLOW = {"If": walk_if, "Loop": walk_loop, "Scan": walk_scan}
_HIDDEN = {"If": "the branch it takes", "Loop": "its body", "Scan": "its body"}


class Read(Protocol):
    """The type of `read`, for modules that import it only when it is needed."""

    def __call__(
        self,
        path: Path,
        dims: Mapping[str, int],
        shapes: Mapping[str, tuple[int, ...]],
        values: Mapping[str, float],
        *,
        weights: bool = False,
    ) -> Program:
        """Return the program of the model in a file."""
        ...


def read(
    path: Path,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, float],
    *,
    weights: bool = False,
) -> Program:
    """Return the program of the model in a file; see `read_onnx`."""
    with about_file(path):
        return _read(load_model(path), path, dims, shapes, values, weights=weights)


def _read(
    model: onnx.ModelProto,
    path: Path,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, float],
    *,
    weights: bool,
) -> Program:
    states = take_states(model, values)
    binding = bind(model.graph, dims, shapes)
    fix_inputs(model.graph, binding.inputs, values)
    binding = binding.without(values)
    walk = Walk(model, binding, _CONTROL_FLOW, path.parent, weights=weights)
    walked = walk.run()
    outputs = tuple(dict.fromkeys(output.name for output in model.graph.output))
    steps = live_steps(walked, outputs)
    tensors = _tensors(walk, steps, tuple(binding.inputs), outputs, states)
    num_live = len(steps)
    tensors, steps = placed(states, tensors, steps, walk.dialect)
    constants = [tensor.name for tensor in tensors if tensor.kind is TensorKind.CONSTANT]
    program = Program.of(
        path.stem,
        tensors,
        steps,
        [name for name in binding.inputs if name not in states.replaced_by],
        [name for name in outputs if name not in {*states.replaced_by.values()}],
        _notes(walk, steps, walk.num_dead + len(walked) - num_live),
        operator_set=OperatorSet.ONNX,
        constants=Constants(walk.values, [*constants, *states.initial.values()]),
        initial=states.initial,
    )
    return drop_noops(program)


def _tensors(
    walk: Walk,
    steps: Sequence[Step],
    inputs: Sequence[str],
    outputs: Sequence[str],
    states: States,
) -> list[Tensor]:
    kinds = dict.fromkeys(outputs, TensorKind.OUTPUT)
    kinds.update(dict.fromkeys(walk.constants, TensorKind.CONSTANT))
    kinds.update(dict.fromkeys(inputs, TensorKind.INPUT))
    kinds.update(dict.fromkeys(states.replaced_by, TensorKind.STATE))
    used = [name for step in steps for name in (*step.reads, *step.writes)]
    return [
        Tensor(name, *walk.types[name], kinds.get(name, TensorKind.ACTIVATION))
        for name in dict.fromkeys((*inputs, *used, *outputs))
    ]


def _notes(walk: Walk, steps: Sequence[Step], num_dead: int) -> list[str]:
    notes = [
        f"{step.operator.label} {step.name!r}: {_HIDDEN[step.operator.label]} needs at most "
        f"{step.operator.scratch(Operands((), ())):,} B, its scratch in a plan of the graph as "
        "written; where ONNX Runtime runs it, that lies outside the arena"
        for step in steps
        if step.operator.label in _HIDDEN
    ]
    notes += [
        f"{step.operator.label} {step.name!r}: how much it makes depends on the data; planned for "
        f"the most, {', '.join(f'{name!r} of {walk.types[name]}' for name in step.writes)}"
        for step in steps
        if isinstance(step.operator, Imported) and step.operator.is_bound
    ]
    if walk.num_folded:
        notes.append(f"operators left out because they make constants only: {walk.num_folded}")
    if num_dead:
        notes.append(f"operators left out because they reach no output: {num_dead}")
    return notes
