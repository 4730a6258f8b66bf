"""A lowered model and its plan, put together as the native core reads them."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.graph import Graph
from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.units import align_up
from arenite.runtime.lowering.lowered import Array, Lowered, Operand, Port, Step
from arenite.runtime.program.operators import External, RuntimeOperator

_ALIGNMENT = 64
"""Bytes: of each constant, a cache line."""
_SLACK = 128
"""Bytes behind the last constant: kernels may read that far past an end."""

Code: TypeAlias = Callable[[Array], bytes | None]
"""Returns a constant in fewer bytes (docs/program-file.md), None if it has none."""

_TYPES = {
    DType.FLOAT32: "float32", DType.FLOAT16: "float16", DType.INT8: "int8", DType.UINT8: "uint8",
    DType.INT16: "int16", DType.INT32: "int32", DType.INT64: "int64", DType.BOOL: "boolean",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assembly:
    """The parts of a program file.

    Attributes:
        program: The schema's root table, as JSON.
        constants: With their offsets in the section of weights, in order.
        weights_size: Bytes of that section.
    """

    program: str
    constants: tuple[tuple[int, Array], ...]
    weights_size: int


def assemble(
    lowered: Lowered,
    graph: Graph,
    problem: Problem,
    plan: Plan,
    *,
    digest: str,
    producer: str,
    code: Code | None = None,
) -> Assembly:
    """Return the parts of the program file.

    Args:
        lowered: The steps.
        graph: Its graph in the order that was planned, aliases included.
        problem: The records of that graph.
        plan: Their offsets; verified.
        digest: SHA-256 of the model file, hexadecimal.
        producer: Who makes the program.
        code: Codes constants of 32-bit floats that steps of the core read.
    """
    return _Assembler(lowered, graph, problem, plan, code).assemble(digest, producer)


class _Assembler:
    def __init__(
        self, lowered: Lowered, graph: Graph, problem: Problem, plan: Plan, code: Code | None
    ) -> None:
        self._lowered = lowered
        self._code = code
        self._codes: dict[str, Array | None] = {}
        self._never_coded = _read_as_they_are(lowered)
        self._graph = graph
        self._problem = problem
        self._plan = plan
        self._offsets = {
            record.name: offset
            for record, offset in zip(problem.records, plan.offsets, strict=True)
        }
        # Records without tensors are of the one step that works in them.
        self._scratch = {
            record.start: offset
            for record, offset in zip(problem.records, plan.offsets, strict=True)
            if not record.tensors
        }
        self._tensors: dict[Operand, int] = {}
        self._entries: list[dict[str, Any]] = []
        self._constants: list[tuple[int, Array]] = []
        self._places: dict[str, int] = {}
        self._places_by_content: dict[str, int] = {}
        self._weights_size = 0

    def assemble(self, digest: str, producer: str) -> Assembly:
        lowered, plan = self._lowered, self._plan
        steps = [
            self._step(position, lowered.steps[operator.name])
            for position, operator in enumerate(self._graph.operators)
        ]
        root = {
            "name": lowered.graph.name,
            "digest": digest,
            "producer": producer,
            "memories": [
                {
                    "name": "arena",
                    "size": plan.height,
                    "alignment": max(
                        (record.alignment for record in self._problem.records), default=1
                    ),
                }
            ],
            "steps": steps,
            "inputs": [self._port(port) for port in lowered.inputs],
            "outputs": [self._port(port) for port in lowered.outputs],
            "states": list(self._states()),
            "records": [
                {
                    "name": record.name, "offset": offset, "size": record.size,
                    "start": record.start, "end": record.end,
                }
                for record, offset in zip(self._problem.records, plan.offsets, strict=True)
            ],
            "tensors": self._entries,
            "weights_size": align_up(self._weights_size, _ALIGNMENT) + _SLACK,
        }  # fmt: skip
        return Assembly(
            json.dumps(root, allow_nan=False),
            tuple(self._constants),
            align_up(self._weights_size, _ALIGNMENT) + _SLACK,
        )

    def _step(self, position: int, step: Step) -> dict[str, Any]:
        operator = self._graph.operators[position]
        entry: dict[str, Any] = {
            "name": operator.name,
            "kernel_type": type(step.operator).__name__,
            "kernel": self._operator(step.operator),
            "inputs": [-1 if each is None else self._tensor(each) for each in step.inputs],
            "outputs": [self._tensor(each) for each in step.outputs],
        }
        if operator.scratch:
            entry["scratch"] = len(self._entries)
            self._entries.append(
                {
                    "name": f"{operator.name}/scratch", "type": "uint8",
                    "shape": [operator.scratch], "place": "memory",
                    "offset": self._scratch[position],
                }
            )  # fmt: skip
        return entry

    def _operator(self, operator: RuntimeOperator) -> dict[str, Any]:
        fields = _fields(operator)
        if isinstance(operator, External):
            model = np.frombuffer(operator.model, np.uint8)
            fields["model"] = self._constant_entry("model", model)
        return fields

    def _tensor(self, operand: Operand) -> int:
        if operand not in self._tensors:
            constant = self._lowered.constants.get(operand.tensor)
            if constant is not None:
                place = self._constant_place(operand.tensor, constant)
            else:
                root, offset = self._graph.root(operand.tensor)
                # What has no elements has no record; it lies anywhere.
                start = self._offsets.get(root, 0)
                place = {"place": "memory", "offset": start + offset + operand.offset}
            entry: dict[str, Any] = {
                "name": operand.tensor,
                "type": _TYPES[self._graph.tensors[operand.tensor].dtype],
                "shape": list(operand.shape),
                **place,
            }
            quantisation = self._lowered.quantisations.get(operand.tensor)
            if quantisation is not None:
                entry["scales"] = list(map(float, quantisation.scales))
                entry["zero_point"] = quantisation.zero_point
                entry["axis"] = quantisation.axis
            self._tensors[operand] = len(self._entries)
            self._entries.append(entry)
        return self._tensors[operand]

    def _constant_place(self, name: str, constant: Array) -> dict[str, Any]:
        if name not in self._codes:
            may_code = self._code is not None and name not in self._never_coded
            coded = self._code(constant) if self._code is not None and may_code else None
            self._codes[name] = None if coded is None else np.frombuffer(coded, np.uint8)
        stored = self._codes[name]
        if stored is None:
            return {"place": "weights", "offset": self._place(name, constant)}
        return {
            "place": "weights", "offset": self._place(name, stored), "coded_size": stored.nbytes,
        }  # fmt: skip

    def _constant_entry(self, name: str, array: Array) -> int:
        self._entries.append(
            {
                "name": name, "type": _TYPES[_dtype(array)], "shape": list(array.shape),
                "place": "weights", "offset": self._place("", array),
            }
        )  # fmt: skip
        return len(self._entries) - 1

    def _place(self, name: str, array: Array) -> int:
        """Return where a constant lies; equal ones lie at the same place."""
        if name and name in self._places:
            return self._places[name]
        array = np.ascontiguousarray(array)
        content = f"{hashlib.sha256(array.data).hexdigest()}:{array.nbytes}"
        place = self._places_by_content.get(content)
        if place is None:
            place = align_up(self._weights_size, _ALIGNMENT)
            self._weights_size = place + array.nbytes
            self._places_by_content[content] = place
            self._constants.append((place, array))
        if name:
            self._places[name] = place
        return place

    def _port(self, port: Port) -> dict[str, Any]:
        return {
            "name": port.name,
            "tensor": self._tensor(port.operand),
            "shape": list(port.shape),
            "permutation": list(port.order),
        }

    def _states(self) -> Iterator[dict[str, int]]:
        for state in self._lowered.states:
            shape = self._graph.tensors[state.tensor].shape
            entry = {"tensor": self._tensor(Operand(state.tensor, shape))}
            if state.initial is not None:
                entry["initial"] = self._constant_entry(f"{state.tensor}/initial", state.initial)
            yield entry


def _read_as_they_are(lowered: Lowered) -> frozenset[str]:
    """Return the constants whose bytes are read by other than steps of the core."""
    external = [each for each in lowered.steps.values() if isinstance(each.operator, External)]
    names = {operand.tensor for step in external for operand in step.inputs if operand}
    names.update(port.operand.tensor for port in (*lowered.inputs, *lowered.outputs))
    return frozenset(names)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from the schema's defaults."""
    found: dict[str, Any] = {}
    for each in dataclasses.fields(value):
        content = getattr(value, each.name)
        if isinstance(content, float) and math.isinf(content) and content == each.default:
            continue
        if isinstance(value, External) and each.name == "model":
            continue
        found[each.name] = _plain(content)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if dataclasses.is_dataclass(value):
        return _fields(value)
    if isinstance(value, float) and not math.isfinite(value):
        return _TEXT_OF[value] if value == value else "nan"
    return value


_TEXT_OF: Mapping[float, str] = {math.inf: "inf", -math.inf: "-inf"}

_BY_LABEL = {dtype.label: dtype for dtype in DType}


def _dtype(array: Array) -> DType:
    return _BY_LABEL[array.dtype.name]
