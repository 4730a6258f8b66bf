"""The tensors in the arena of a stock interpreter, as it states them.

The file does not tell: kernels add scratch (im2col, accumulators) when they are prepared.
So the model is loaded once, its memory allocated, and the interpreter's own lists read.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from arenite.planner import (
    AliasKind,
    DType,
    Problem,
    Program,
    Rules,
    Step,
    Tensor,
    TensorKind,
    derive,
)
from arenite.planner.errors import ModelError
from arenite.planner.importers.tflite import tflite_operator
from arenite.planner.programs import Names, OperatorSet
from arenite.planner.units import align_up
from arenite.runtime.errors import UnexpectedRuntimeError
from arenite.runtime.targets.litert.stock import (
    AllocationType,
    PrepareHook,
    TfLiteContext,
    TfLiteNode,
    TfLiteTensor,
    check_version,
    indexes,
    load_interpreter,
    node_addresses,
    refusal,
    tensors,
)

ALIGNMENT: Final = 64
# Kinds of sharing that TFLite's kernels support. Whether inputs may be reused is up to the caller.
RULES: Final = Rules(
    (AliasKind.VIEWS, AliasKind.IN_PLACE, AliasKind.REUSE_INPUTS), alignment=ALIGNMENT
)
_DTYPES: Final = {dtype.label: dtype for dtype in DType}


@dataclass(frozen=True, slots=True)
class ArenaTensor:
    """A tensor of the interpreter's arena.

    Attributes:
        index: Its index in the interpreter.
        size: Bytes.
        label: Its name in the file, empty for scratch.
        temporary: Whether it is scratch, made when its operator is prepared.
    """

    index: int
    size: int
    label: bytes
    temporary: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """The arena of a stock interpreter.

    Attributes:
        program: The steps in the order they run, with only the tensors in the arena.
        tensors: Tensors of the arena, by name in the program.
        stock_bytes: Size of the arena as the interpreter lays it out itself.
    """

    program: Program
    tensors: Mapping[str, ArenaTensor]
    stock_bytes: int

    def problem(self, *, keep_inputs: bool, alignment: int = ALIGNMENT) -> Problem:
        """Return the records to place; views and element-wise results share storage.

        Args:
            keep_inputs: Leave the model's inputs alone for the whole run, as the stock
                interpreter does; else they may be overwritten after their last use.
            alignment: Bytes of every offset.
        """
        program = self.program
        if keep_inputs:
            kept = tuple(dict.fromkeys((*program.outputs, *program.inputs)))
            program = replace(program, outputs=kept)
        return derive(program, replace(RULES, alignment=alignment)).problem


def litert_problem(
    path: Path, *, keep_inputs: bool = False, alignment: int = ALIGNMENT
) -> Problem:
    """Return the records of TFLite's or LiteRT's CPU arena for this model, scratch included.

    The stock package's interpreter loads the model; a damaged one may end the process.

    Args:
        path: The model.
        keep_inputs: Whether the model's inputs outlive the run, as they do in stock.
        alignment: Bytes of every offset; the runtime's kernels expect 64.

    Raises:
        UnsupportedModelError: The runtime refuses the model.
        UnexpectedRuntimeError: The runtime is not one we know.
        MissingDependencyError: There is no runtime.
    """
    return probe_arena(path).problem(keep_inputs=keep_inputs, alignment=alignment)


def probe_arena(model: Path | bytes) -> Probe:
    """Return the arena of the stock interpreter; raises as `litert_problem`."""
    check_version()
    nodes: list[int] = []
    hook = PrepareHook(lambda context_address: nodes.extend(node_addresses(context_address)))
    interpreter = load_interpreter(model, 1, hook)
    with _refusals(model):
        interpreter.allocate_tensors()
    name = "model" if isinstance(model, bytes) else model.name
    if hook.num_subgraphs != 1:
        raise UnexpectedRuntimeError(
            f"{name}: {hook.num_subgraphs} subgraphs are unsupported, supported: 1"
        )
    inside, details = _inside(interpreter, hook)
    if not _is_settled(inside, details):  # shapes that the kernels find out while they run
        with _refusals(model):
            run_on_zeros(interpreter)
        inside, details = _inside(interpreter, hook)
        if not _is_settled(inside, details):
            raise UnexpectedRuntimeError("tensor sizes are unknown after a run")
    op_types = [each["op_name"] for each in interpreter._get_ops_details()]  # noqa: SLF001
    reading = _Reading(inside, {each["index"]: each for each in details})
    try:
        program = reading.program(
            name,
            list(zip(op_types, map(TfLiteNode.from_address, nodes), strict=True)),
            [each["index"] for each in interpreter.get_input_details()],
            [each["index"] for each in interpreter.get_output_details()],
        )
    except (ModelError, ValueError) as error:
        raise UnexpectedRuntimeError(f"the operators are inconsistent: {error}") from error
    return Probe(program, reading.arena, _extent(inside))


@contextmanager
def _refusals(model: Path | bytes) -> Iterator[None]:
    """Convert errors of the interpreter to ours."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise refusal(model, error) from error


def run_on_zeros(interpreter: Any) -> None:
    """Run a stock interpreter once and drop its outputs."""
    for each in interpreter.get_input_details():
        interpreter.set_tensor(each["index"], np.zeros(each["shape"], each["dtype"]))
    interpreter.invoke()
    interpreter.reset_all_variables()


def _inside(interpreter: Any, hook: PrepareHook) -> tuple[Any, list[dict[str, Any]]]:
    """Return the tensors as the structures and as the interpreter state them.

    Raises:
        UnexpectedRuntimeError: The two differ, so the structures are unknown.
    """
    details = interpreter.get_tensor_details()
    inside = tensors(TfLiteContext.from_address(hook.context_address))
    for each in details:
        tensor = inside[each["index"]]
        label = (tensor.name or b"").decode(errors="replace")
        if tensor.allocation_type not in set(AllocationType) or label != each["name"]:
            raise UnexpectedRuntimeError(f"tensor {each['index']} has an unexpected address")
    return inside, details


def _is_settled(inside: Any, details: list[dict[str, Any]]) -> bool:
    """Tell whether every tensor of the arena has its place, and the size of its shape."""
    return all(
        inside[each["index"]].data
        and inside[each["index"]].bytes
        <= np.dtype(each["dtype"]).itemsize * math.prod(each["shape"].tolist())
        for each in details
        if _is_in_arena(inside[each["index"]])
    )


def _is_in_arena(tensor: TfLiteTensor) -> bool:
    return bool(
        tensor.allocation_type == AllocationType.ARENA
        and not tensor.is_variable
        and tensor.bytes > 0
    )


def _extent(inside: Any) -> int:
    placed = [tensor for tensor in inside if _is_in_arena(tensor) and tensor.data]
    if not placed:
        return 0
    first = min(tensor.data for tensor in placed)
    extent = max(tensor.data + tensor.bytes for tensor in placed) - first
    return align_up(extent, ALIGNMENT)


class _Reading:
    """Turns the interpreter's lists into a program of the tensors in its arena."""

    def __init__(self, inside: Any, details: Mapping[int, dict[str, Any]]) -> None:
        self.arena: dict[str, ArenaTensor] = {}
        self._inside = inside
        self._details = details
        self._names = Names()
        self._by_index: dict[int, str] = {}
        self._tensors: list[Tensor] = []

    def program(
        self, name: str, nodes: list[tuple[str, TfLiteNode]], inputs: list[int], outputs: list[int]
    ) -> Program:
        for index in inputs:
            self._add(index, TensorKind.INPUT)
        for index in outputs:
            self._add(index, TensorKind.OUTPUT)
        steps = []
        for number, (op_type, node) in enumerate(nodes):
            step_name = f"{op_type}_{number}"
            for index in indexes(node.temporaries):
                self._add(index, TensorKind.SCRATCH, f"{step_name}/scratch")
            steps.append(
                Step(
                    step_name,
                    tflite_operator(op_type),
                    self._named(indexes(node.inputs)),
                    self._named((*indexes(node.outputs), *indexes(node.temporaries))),
                )
            )
        return Program.of(
            name,
            self._tensors,
            steps,
            [each for each in self._named(inputs) if each],
            [each for each in self._named(outputs) if each],
            operator_set=OperatorSet.TFLITE,
        )

    def _named(self, positions: "list[int] | tuple[int, ...]") -> tuple[str, ...]:
        for index in positions:
            self._add(index, TensorKind.ACTIVATION)
        return tuple(self._by_index.get(index, "") for index in positions)

    def _add(self, index: int, kind: TensorKind, unnamed: str = "") -> None:
        if index < 0 or index in self._by_index or not _is_in_arena(self._inside[index]):
            return
        tensor = self._inside[index]
        label = tensor.name or b""
        name = self._names.take(label.decode(errors="replace") or unnamed or f"tensor_{index}")
        self._by_index[index] = name
        self.arena[name] = ArenaTensor(
            index, tensor.bytes, label, temporary=kind is TensorKind.SCRATCH
        )
        self._tensors.append(self._typed(name, index, tensor.bytes, kind))

    def _typed(self, name: str, index: int, size: int, kind: TensorKind) -> Tensor:
        """Return the tensor with its type and shape, or as bytes if these do not fit."""
        details = self._details.get(index)
        if details is not None:
            dtype = _DTYPES.get(np.dtype(details["dtype"]).name)
            if dtype is not None:
                tensor = Tensor(name, dtype, tuple(details["shape"].tolist()), kind)
                if tensor.size == size:
                    return tensor
        return Tensor(name, DType.UINT8, (size,), kind)
