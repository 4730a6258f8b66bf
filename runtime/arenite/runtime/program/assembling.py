"""The parts of a program file, put together: a program, its plan and its weights."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np

from arenite.planner import Array, DType, Plan, Port, Problem, Program, Step, Tensor, TensorKind
from arenite.planner.operators import Band, Pieces
from arenite.planner.programs import COMPUTE, RowPlaces
from arenite.planner.sizes import depends
from arenite.planner.tensors import SPILLED, row_bytes
from arenite.runtime.operators.base import UNSTORED, RuntimeOperator
from arenite.runtime.operators.loops import While
from arenite.runtime.operators.movement import Wait
from arenite.runtime.operators.special import External
from arenite.runtime.program.file import Assembly, Weights, with_weights_size
from arenite.runtime.program.rows import RowVariants, is_contiguous
from arenite.runtime.program.sizing import Sizing, check_shapes
from arenite.runtime.program.systems import system_fields

_BESIDE = 1
"""Number of the lane that runs beside the computation."""
Code: TypeAlias = Callable[[Array], bytes | None]
"""Encodes a constant in fewer bytes (docs/program-file.md); None if that is impossible."""

_TYPES = {
    DType.FLOAT32: "float32", DType.FLOAT16: "float16", DType.INT8: "int8", DType.UINT8: "uint8",
    DType.INT16: "int16", DType.INT32: "int32", DType.INT64: "int64", DType.BOOL: "boolean",
    DType.FLOAT64: "float64", DType.BFLOAT16: "bfloat16",
}  # fmt: skip


def assemble(
    program: Program,
    problem: Problem,
    plan: Plan,
    *,
    digest: str,
    producer: str,
    tuned_on: str | None = None,
    code: Code | None = None,
    weights: Weights | None = None,
) -> Assembly:
    """Return the parts of the program file.

    Args:
        program: The program in its final order, its storage shared.
        problem: The records of that program.
        plan: A verified plan of those records.
        digest: SHA-256 of the model file, hexadecimal.
        producer: Name and version of the tool that made the program.
        tuned_on: The processor whose tuned kernels the steps state; None if they state none.
        code: Encodes constants of 32-bit floats that steps of the core read.
        weights: Those of programs that share the file.
    """
    assembler = _Assembler(program, problem, plan, code, weights or Weights())
    return assembler.assemble(digest, producer, tuned_on)


class _Assembler:
    def __init__(
        self, program: Program, problem: Problem, plan: Plan, code: Code | None, weights: Weights
    ) -> None:
        self._program = program
        self._weights = weights
        self._code = code
        self._codes: dict[str, Array | None] = {}
        self._never_coded = _read_as_they_are(program)
        self._problem = problem
        self._plan = plan
        placed = list(zip(problem.records, plan.offsets, strict=True))
        self._records = {record.name: (record.memory, offset) for record, offset in placed}
        # Records without tensors are the scratch of one step.
        self._scratch = {
            record.start: (record.memory, offset)
            for record, offset in placed
            if not record.tensors
        }
        self._room = {each.start: each.size for each in problem.records if not each.tensors}
        self._memory_numbers = {memory.name: n for n, memory in enumerate(problem.memories)}
        self._beside: dict[str, int] = {}  # steps of another lane by their outputs
        self._awaited: set[int] = set()
        self._row_places = RowPlaces(program)
        self._row_variants = RowVariants(program, self._row_places, self._place_of_tensor)
        self._row_tensors: dict[tuple[str, int], int] = {}
        self._sizing = Sizing(program.dimensions)
        self._rows = {each.name: number for number, each in enumerate(program.dimensions)}
        self._tensors: dict[str, int] = {}
        self._entries: list[dict[str, Any]] = []
        self._places: dict[str, int] = {}
        self._inner: list[dict[str, Any]] = []
        self._made_by = "", ""

    def assemble(self, digest: str, producer: str, tuned_on: str | None) -> Assembly:
        program = self._program
        self._made_by = digest, producer
        check_shapes(program)
        steps, turns = self._steps()
        root: dict[str, Any] = {
            "name": program.name,
            "digest": digest,
            "producer": producer,
            "memories": list(self._memories()),
            "steps": steps,
            "inputs": [self._port(port) for port in program.inputs],
            "outputs": [self._port(port) for port in program.outputs],
            "states": list(self._states()),
            "records": list(self._rectangles()),
            "tensors": self._entries,
            "weights_size": self._weights.section_bytes,
        }
        if turns:
            root["turns"] = turns
        if tuned_on is not None:
            root["tuned_on"] = tuned_on
        root |= self._sizing.fields()
        if program.system is not None:
            root |= system_fields(program.system, [port.name for port in program.outputs])
        if self._inner:
            root["inner"] = self._inner
        size = root["weights_size"]
        return Assembly(with_weights_size(root, size), tuple(self._weights.constants), size)

    def _rectangles(self) -> Iterator[dict[str, Any]]:
        pieces = self._row_places.pieces
        for each in self._problem.rectangles(self._plan.offsets):
            yield {
                "name": pieces[each.name].tensor if each.name in pieces else each.name,
                "memory": self._memory_numbers[each.memory],
                "offset": each.offset, "size": each.size, "start": each.start, "end": each.end,
            }  # fmt: skip

    def _steps(self) -> tuple[list[dict[str, Any]], list[dict[str, int]]]:
        """Return the steps, those that run in bands once, and all turns if there are such."""
        steps: list[dict[str, Any]] = []
        turns: list[dict[str, int]] = []
        banded: dict[tuple[str, int, tuple[str, int] | None], int] = {}
        for number, step in enumerate(self._program.steps):
            band = step.operator
            if not isinstance(band, Band):
                turns.append({"step": len(steps), "first": 0, "count": 0})
                result = self._program.operands(step).result
                self._sizing.add_step(len(steps), step.name, step.operator, result)
                steps.append(self._step(number, step) | self._lane(step, len(steps)))
                continue
            scratch = self._scratch[number] if band.working_memory else None
            key = band.step, self._row_variants.of(step.name), scratch
            if key not in banded:
                banded[key] = len(steps)
                self._sizing.add_step(len(steps), band.step, band.operator)
                entry = self._banded_step(band, step)
                if scratch is not None:
                    place = self._place_of(scratch, 0)
                    entry["scratch"] = self._working_memory(band.step, band.working_memory, place)
                steps.append(entry | self._lane(step, len(steps)))
            turns.append({"step": banded[key], "first": band.first, "count": band.rows})
        return steps, turns if banded else []

    def _lane(self, step: Step, index: int) -> dict[str, Any]:
        """Return the lane of a step, and which steps of other lanes are done before it."""
        if step.lane != COMPUTE:
            self._beside.update(dict.fromkeys(step.writes, index))
            return {"lane": _BESIDE}
        awaits = {self._beside[name] for name in step.reads if name in self._beside}
        awaits -= self._awaited
        self._awaited |= awaits
        return {"awaits": sorted(awaits)} if awaits else {}

    def _banded_step(self, band: Band, step: Step) -> dict[str, Any]:
        """Return the step that makes rows at several turns, from one of these."""
        assert isinstance(band.operator, RuntimeOperator)
        tables = self._row_variants.tables(band.step, self._row_variants.of(step.name))
        inputs, outputs = tables[: len(band.inputs)], tables[len(band.inputs) :]
        entry: dict[str, Any] = {
            "name": band.step,
            "kernel_type": type(band.operator).__name__,
            "kernel": self._operator(band.operator),
            "inputs": list(map(self._operand, band.inputs, inputs)),
            "outputs": list(map(self._operand, band.outputs, outputs)),
        }
        if band.sums:
            name = step.outputs[-1]
            root, offset = self._program.root(name)
            size = self._program.tensors[name].size
            place = self._place_of(self._records[root], offset)
            entry["scratch"] = self._working_memory(band.step, size, place)
        return entry

    def _operand(self, pieces: Pieces | None, table: int) -> int:
        """Return the tensor of an operand: it may have rows at places of their own."""
        if pieces is None:
            return -1
        if not pieces.firsts:
            return self._tensor(pieces.tensor)
        key = pieces.tensor, table
        if key not in self._row_tensors:
            self._row_tensors[key] = len(self._entries)
            self._entries.append(self._row_tensor(*key))
        return self._row_tensors[key]

    def _row_tensor(self, name: str, table: int) -> dict[str, Any]:
        whole = self._row_places.whole(name)
        memory, starts = self._row_variants.starts(name, table, whole.shape)
        holder = self._row_variants.holder(name, table)
        size = row_bytes(whole)
        offset = None
        if holder is not None:
            memory, offset = self._place_of_tensor(holder)
        elif len(starts) == 1 or (not depends(size) and is_contiguous(starts, size)):
            offset = starts[0]
        self._sizing.add_tensor(len(self._entries), whole.shape, 0 if offset is None else offset)
        entry = {
            "name": name, "type": _TYPES[whole.dtype],
            "shape": [*map(int, whole.shape)], **_quantisation(whole),
            "place": "memory", "memory": self._memory_numbers[memory],
        }  # fmt: skip
        return {**entry, "rows": starts} if offset is None else {**entry, "offset": offset}

    def _place_of_tensor(self, name: str) -> tuple[str, int]:
        root, offset = self._program.root(name)
        memory, start = self._records[root]
        return memory, start + offset

    def _step(self, number: int, step: Step) -> dict[str, Any]:
        assert isinstance(step.operator, RuntimeOperator)
        entry: dict[str, Any] = {
            "name": step.name,
            "kernel_type": type(step.operator).__name__,
            "kernel": self._operator(step.operator),
            "inputs": [self._tensor(name) if name else -1 for name in step.inputs],
            "outputs": [self._tensor(name) for name in step.outputs],
        }
        if isinstance(step.operator, Wait):
            entry["inputs"] = []  # it computes with nothing, and one may lie in a file
        operands = self._program.operands(step)
        scratch = step.operator.scratch(operands)
        if scratch:
            if step.operator.computes_halves(operands):
                scratch = self._room[number]
            place = self._place_of(self._scratch[number], 0)
            entry["scratch"] = self._working_memory(step.name, scratch, place)
        return entry

    def _working_memory(self, step: str, size: int, place: dict[str, Any]) -> int:
        """Return the tensor of bytes that is a step's working memory."""
        self._entries.append(
            {"name": f"{step}/scratch", "type": "uint8", "shape": [int(size)], **place}
        )
        return len(self._entries) - 1

    def _memories(self) -> Iterator[dict[str, Any]]:
        """Yield the memories, each with the height of the plan as its size."""
        for memory, height in zip(self._problem.memories, self._plan.heights, strict=True):
            records = [each for each in self._problem.records if each.memory == memory.name]
            alignment = max((each.alignment for each in records), default=1)
            yield {
                "name": memory.name, "size": height, "alignment": max(alignment, memory.alignment),
                "writable": memory.writable,
                **({"spilled": True} if memory.name == SPILLED else {}),
            }  # fmt: skip

    def _place_of(self, record: tuple[str, int], offset: int) -> dict[str, Any]:
        memory, start = record
        return {
            "place": "memory", "memory": self._memory_numbers[memory], "offset": start + offset,
        }  # fmt: skip

    def _operator(self, operator: RuntimeOperator) -> dict[str, Any]:
        fields = _fields(operator)
        if isinstance(operator, External):
            model = np.frombuffer(operator.model, np.uint8)
            fields["model"] = self._constant_entry("model", model)
        if isinstance(operator, While):
            first = len(self._inner)
            for each in operator.inner:
                inside = _Assembler(*each.placed, None, self._weights)
                self._inner.append(inside.assemble(*self._made_by, None).root)
            fields |= {"condition": first, "body": first + 1}
        return fields

    def _tensor(self, name: str) -> int:
        if name not in self._tensors:
            tensor = self._program.tensors[name]
            root, offset = self._program.root(name)
            if self._program.tensors[root].kind is TensorKind.CONSTANT:
                place = self._constant_place(root, self._program.constants[root])
                place["offset"] += offset
            else:
                # An empty tensor has no record, so any offset will do.
                record = self._records.get(root)
                place = {"place": "memory"} if record is None else self._place_of(record, offset)
            entry: dict[str, Any] = {
                "name": name, "type": _TYPES[tensor.dtype],
                "shape": [*map(int, tensor.shape)], **place,
            }  # fmt: skip
            entry |= _quantisation(tensor)
            self._tensors[name] = len(self._entries)
            self._sizing.add_tensor(len(self._entries), tensor.shape, entry.get("offset", 0))
            self._entries.append(entry)
        return self._tensors[name]

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
                "name": name, "type": _TYPES[DType.of_label(array.dtype.name)],
                "shape": list(array.shape),
                "place": "weights", "offset": self._place("", array),
            }
        )  # fmt: skip
        return len(self._entries) - 1

    def _place(self, name: str, array: Array) -> int:
        """Return the offset of a constant; equal constants share one."""
        place = self._places.get(name) if name else None
        if place is None:
            place = self._weights.place(array)
            if name:
                self._places[name] = place
        return place

    def _port(self, port: Port) -> dict[str, Any]:
        stored = self._program.tensors[port.tensor].shape
        return {
            "name": port.name,
            "tensor": self._tensor(port.tensor),
            "shape": list(map(int, port.shape(stored))),
            "permutation": list(range(len(stored)) if port.axes is None else port.axes),
        }

    def _states(self) -> Iterator[dict[str, int]]:
        for name, tensor in self._program.tensors.items():
            if tensor.kind is TensorKind.STATE:
                entry = {"tensor": self._tensor(name)}
                if name in self._program.rows:
                    entry["rows"] = self._rows[self._program.rows[name]]
                if name in self._program.initial:
                    entry["initial"] = self._tensor(self._program.initial[name])
                yield entry


def _quantisation(tensor: Tensor) -> dict[str, Any]:
    stated = tensor.quantisation
    if stated is None:
        return {}
    return {
        "scales": list(map(float, stated.scales)), "zero_point": stated.zero_point,
        "axis": stated.axis,
    }  # fmt: skip


def _read_as_they_are(program: Program) -> frozenset[str]:
    """Return the constants that others than steps of the core read, so cannot be coded."""
    names = {
        name
        for step in program.steps
        if isinstance(step.operator, External)
        for name in step.reads
    }
    names.update(port.tensor for port in (*program.inputs, *program.outputs))
    names.update(program.initial.values())
    return frozenset(program.root(name)[0] for name in names)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from the schema's defaults."""
    found: dict[str, Any] = {}
    for each in dataclasses.fields(value):
        if UNSTORED in each.metadata:
            continue
        content = getattr(value, each.name)
        if isinstance(content, float) and math.isinf(content) and content == each.default:
            continue
        if isinstance(value, External) and each.name == "model":
            continue
        if isinstance(value, While):
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
