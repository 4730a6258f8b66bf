"""States of an ONNX file: inputs that an output replaces for the next run.

ONNX has no states. A file states them in its metadata, under `arenite.states`, as JSON: the name
of each input with that of the output. A runtime that knows nothing of it is fed the inputs and
hands back the outputs. An initialiser of the input's name is the initial value of the state;
without one it starts as zeros.

In a program the new value lies in the place of the old one if no later step reads that::

    w --> Conv ... ConvTranspose ... Sub --> w/next, in the storage of w
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx
import onnx.helper

from arenite.planner.errors import BindingError, ModelFormatError
from arenite.planner.importers.onnx.node import Dialect, Origin
from arenite.planner.importers.onnx.operators import onnx_operator
from arenite.planner.operators.operator import Operands, same_layout
from arenite.planner.programs.program import Names, Step
from arenite.planner.tensors import Alias, Tensor, TensorKind

STATES_KEY = "arenite.states"
"""Key of the metadata that name the states."""


@dataclass(frozen=True, slots=True)
class States:
    """The states of a file.

    Attributes:
        replaced_by: The output that replaces each state.
        initial: Name of the constant that each starts with; those left out start as zeros.
        continued_by: The output that has the rows of each input that grows, and more.
    """

    replaced_by: Mapping[str, str]
    initial: Mapping[str, str]
    continued_by: Mapping[str, str] = field(default_factory=dict)


def take_states(model: onnx.ModelProto, values: Mapping[str, float]) -> States:
    """Return the states that a model's metadata name, and make inputs of them all.

    An initialiser of a state gets a name of its own: the state is no constant.

    Args:
        model: Changed in place.
        values: Inputs that are fixed at a value.

    Raises:
        ModelFormatError: The metadata are not as stated above.
        BindingError: A state is to be fixed.
    """
    pairs = _pairs(model)
    for name in values:
        if name in pairs:
            raise BindingError(name, "is a state of the model; only inputs can be fixed")
    graph = model.graph
    names = Names(
        [
            *(value.name for value in (*graph.input, *graph.output)),
            *(tensor.name for tensor in graph.initializer),
            *(name for node in graph.node for name in (*node.input, *node.output)),
        ]
    )
    initial: dict[str, str] = {}
    for tensor in graph.initializer:
        if tensor.name in pairs:
            initial[tensor.name] = tensor.name = names.take(f"{tensor.name}/initial")
    return States(pairs, {state: initial[state] for state in pairs if state in initial})


def _pairs(model: onnx.ModelProto) -> dict[str, str]:
    texts = [each.value for each in model.metadata_props if each.key == STATES_KEY]
    if not texts:
        return {}
    try:
        pairs = json.loads(texts[0])
    except (ValueError, RecursionError) as error:
        raise _wrong(f"not JSON: {error}") from error
    inputs = {value.name for value in model.graph.input}
    outputs = {value.name for value in model.graph.output}
    if len(texts) > 1 or not isinstance(pairs, dict):
        raise _wrong("not one object of inputs and outputs")
    for name, new in pairs.items():
        if not isinstance(new, str) or name not in inputs or new not in outputs:
            raise _wrong(f"{name!r} and {new!r} are not an input and an output")
        if new != name and new in pairs:
            raise _wrong(f"{name!r} is replaced by another state, {new!r}")
    if len({*pairs.values()}) < len(pairs):
        raise _wrong("one output replaces several states")
    return pairs


def _wrong(reason: str) -> ModelFormatError:
    return ModelFormatError(f"metadata {STATES_KEY!r}: {reason}")


def placed(
    states: States, tensors: Sequence[Tensor], steps: Sequence[Step], dialect: Dialect
) -> tuple[list[Tensor], list[Step]]:
    """Return tensors and steps with each new value in the place of the old one.

    Where that is still read, or a kernel may not write over it, a last step copies the value.

    Raises:
        ModelFormatError: A new value has another type or shape than its state.

    Cost: O(operands of the steps + states).
    """
    by_name = {tensor.name: tensor for tensor in tensors}
    last_read: dict[str, int] = {}
    writers: dict[str, int] = {}
    for number, step in enumerate(steps):
        last_read.update(dict.fromkeys(step.reads, number))
        writers.update(dict.fromkeys(step.writes, number))
    step_names, tensor_names = Names(step.name for step in steps), Names(by_name)
    copies: list[Step] = []
    for state, new in states.replaced_by.items():
        if new == state:
            continue
        if not same_layout(by_name[state], by_name[new]):
            raise _wrong(f"{state!r} and {new!r} are of different types or shapes")
        writer = writers.get(new)
        if writer is not None and last_read.get(state, -1) <= writer:
            step = steps[writer]
            if state not in step.reads or _may_overwrite(by_name, step, state, new):
                by_name[new] = replace(
                    by_name[new], kind=TensorKind.ACTIVATION, alias=Alias(state)
                )
                continue
        target = tensor_names.take(f"{state}/stored")
        by_name[target] = replace(by_name[state], name=target, alias=Alias(state),
                                  kind=TensorKind.ACTIVATION)  # fmt: skip
        node = onnx.helper.make_node("Identity", [new], [target])
        operator = onnx_operator("Identity", origin=Origin(node, dialect))
        copies.append(Step(step_names.take(f"{state}/store"), operator, (new,), (target,)))
    return list(by_name.values()), [*steps, *copies]


def _may_overwrite(tensors: Mapping[str, Tensor], step: Step, state: str, new: str) -> bool:
    if step.outputs[0] != new or step.operator.updates:
        return False
    operands = Operands(
        tuple(tensors[name] if name else None for name in step.inputs),
        tuple(tensors[name] if name else None for name in step.outputs),
    )
    allowed = step.operator.overwritable(operands)
    return all(p in allowed for p, name in enumerate(step.inputs) if name == state)
