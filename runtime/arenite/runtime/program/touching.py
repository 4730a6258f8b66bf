"""Rows that the turns of a program file read and write, by the file alone.

Nothing here knows how programs are made: which rows a turn reads follows from its operator's
attributes, as `docs/program-file.md` and the schema say.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from arenite.planner.placement import Rectangle
from arenite.planner.programs import (
    PlacedRows,
    Rows,
    Run,
    StageRun,
    System,
    TouchingTurn,
    stage_runs,
)
from arenite.runtime import _schema
from arenite.runtime.errors import ProgramError
from arenite.runtime.program.packing import unpacked
from arenite.runtime.program.sized_root import root_at

Root: TypeAlias = Mapping[str, Any]

_FILTER, _ADDEND = 1, 3
_SUMS = ("sum", "mean")
_NOT_FINITE = re.compile(r'^(\s*(?:"\w+": )?)(-?)(inf|nan)(?=,?$)', re.MULTILINE)
_ITEM_BYTES = {
    "float32": 4, "float16": 2, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8,
    "boolean": 1, "float64": 8, "bfloat16": 2,
}  # fmt: skip
_KEEPING = frozenset(
    {
        "Unary", "Binary", "Select", "Convert", "MultiplyAdd", "Softmax", "LocalResponseNorm",
        "L2Norm", "Hardmax", "LayerNorm", "Rotary",
    }
)  # fmt: skip
"""Operators that make each row from the same row of operands that have as many."""


def root_of(flatbuffer: bytes) -> Root:
    """Return the root table of a program that the core has accepted.

    Raises:
        ProgramError: It is damaged, so the core has not.
    """
    try:
        text = _schema.decode(flatbuffer)
    except ValueError as error:
        raise ProgramError(str(error)) from error
    return unpacked(json.loads(_NOT_FINITE.sub(_as_json, text)))


def _as_json(found: re.Match[str]) -> str:
    return found[1] + ("NaN" if found[3] == "nan" else found[2] + "Infinity")


def rectangles_of(root: Root) -> Iterator[Rectangle]:
    """Yield the rectangles of the records of a program."""
    for each in root["records"]:
        yield Rectangle(
            each["name"], root["memories"][each["memory"]]["name"], each["offset"], each["size"],
            each["start"], each["end"],
        )  # fmt: skip


def turns_of(root: Root) -> Sequence[tuple[int, int, int]]:
    """Return the turns: step, first row, and how many, 0 for a whole step."""
    stated = root.get("turns") or ()
    if stated:
        return [(each["step"], each["first"], each["count"]) for each in stated]
    return [(step, 0, 0) for step in range(len(root["steps"]))]


def run_of(root: Root, sizes: Mapping[str, int] | None = None) -> Run:
    """Return the run of a program that the core has accepted.

    Args:
        sizes: Values of all its dimensions; by default the highest.

    Cost: O(turns x operands + elements that copies by rows move).
    """
    return _FileRun(root, sizes).run()


def stage_runs_of(root: Root, system: System) -> Sequence[StageRun]:
    """Return the run of each model of a program that the core has accepted.

    Cost: That of `run_of`.
    """
    return list(_FileRun(root).stage_runs(system))


class _FileRun:
    def __init__(self, root: Root, sizes: Mapping[str, int] | None = None) -> None:
        self._root = root if sizes is None else root_at(root, sizes)
        self._stated = root
        self._tensors = self._root["tensors"]
        self._cut: set[int] = set()
        self._moved: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._parts: list[PlacedRows] = []  # of results, beside others that lie there already

    def run(self) -> Run:
        root = self._root
        turns = [self._turn(*turn) for turn in turns_of(root)]
        states = [state["tensor"] for state in root.get("states") or ()]
        grown = {
            state["tensor"] for state in root.get("states") or () if state.get("rows", -1) >= 0
        }
        filled = [
            index
            for index, each in enumerate(self._tensors)
            if each["place"] == "memory" and not root["memories"][each["memory"]]["writable"]
        ]
        inputs = [*(port["tensor"] for port in root["inputs"]), *states, *filled]
        outputs = [*(port["tensor"] for port in root["outputs"]), *states]
        names = self._names()
        return Run(
            tuple(
                self._placed(index, name)
                for index, name in enumerate(names)
                if self._is_placed(index)
            )
            # What a run leaves in a state that grows is rows that were there and new ones.
            + tuple(
                self._placed(each, _grown(names[each]))
                for each in sorted(grown)
                if self._is_placed(each)
            )
            + tuple(self._parts),
            tuple(
                TouchingTurn(
                    root["steps"][step]["name"], first, count, tuple(self._rows(reads, names)),
                    (*self._rows(writes, names), *(Rows(part.name, 0, 1) for part in parts)),
                )
                for (step, first, count), (reads, writes, parts) in zip(
                    turns_of(root), turns, strict=True
                )
            ),
            tuple(names[each] for each in dict.fromkeys(inputs) if self._is_placed(each)),
            tuple(
                _grown(names[each]) if each in grown else names[each]
                for each in dict.fromkeys(outputs)
                if self._is_placed(each)
            ),
        )  # fmt: skip

    def stage_runs(self, system: System) -> Iterator[StageRun]:
        root, names = self._root, self._names()

        def ports(key: str) -> list[tuple[str, str]]:
            return [(port["name"], names[port["tensor"]]) for port in root[key]]

        states = [names[state["tensor"]] for state in root.get("states") or ()]
        return stage_runs(self.run(), system, ports("inputs"), ports("outputs"), states)

    def _names(self) -> list[str]:
        """Return a name for each tensor; a tensor that is cut and one that is whole may share."""
        seen: set[str] = set()
        names: list[str] = []
        for index, tensor in enumerate(self._tensors):
            name = tensor["name"]
            if name in seen:
                name = f"{name} (tensor {index})"
            seen.add(name)
            names.append(name)
        return names

    def _is_placed(self, index: int) -> bool:
        return index >= 0 and self._tensors[index]["place"] == "memory" and self._size(index) > 0

    def _size(self, index: int) -> int:
        tensor = self._tensors[index]
        return math.prod(self._shape(index)) * _ITEM_BYTES[tensor["type"]]

    def _num_rows(self, index: int) -> int:
        return self._shape(index)[1]

    def _shape(self, index: int) -> Sequence[int]:
        return list(self._tensors[index].get("shape") or ())

    def _placed(self, index: int, name: str) -> PlacedRows:
        tensor, size = self._tensors[index], self._size(index)
        memory = self._root["memories"][tensor["memory"]]["name"]
        stated = tensor.get("rows") or ()
        if not stated and index not in self._cut:
            return PlacedRows(name, memory, size, (tensor["offset"],))
        num_rows = self._num_rows(index)
        row = size // num_rows
        offsets = stated[:num_rows] or [tensor["offset"] + row * each for each in range(num_rows)]
        return PlacedRows(name, memory, row, tuple(offsets))

    def _rows(
        self, touched: Sequence[tuple[int, range | None]], names: Sequence[str]
    ) -> Iterator[Rows]:
        for index, rows in touched:
            if self._is_placed(index):
                if rows is None:
                    is_cut = index in self._cut or self._tensors[index].get("rows")
                    rows = range(self._num_rows(index) if is_cut else 1)
                if rows:
                    yield Rows(names[index], rows.start, rows.stop)

    def _turn(
        self, number: int, first: int, count: int
    ) -> tuple[
        list[tuple[int, range | None]], list[tuple[int, range | None]], Sequence[PlacedRows]
    ]:
        """Return tensors and rows that a turn reads, and those that it writes; None for all.

        And parts of its results that it writes, where others lie there already.
        """
        step = self._root["steps"][number]
        inputs: list[int] = list(step.get("inputs") or ())
        outputs: list[int] = list(step.get("outputs") or ())
        scratch = [(step["scratch"], None)] if step["scratch"] >= 0 else []
        if count == 0:
            results, parts = self._made(step)
            return (
                [(each, None) for each in inputs], [*((r, None) for r in results), *scratch], parts
            )  # fmt: skip
        sums_up = self._takes_rows(number)
        counted = inputs[0] if sums_up else outputs[0]
        made = range(first, min(first + count, self._num_rows(counted)))
        if sums_up:
            self._cut.add(inputs[0])
            # The turn with the last row of the highest sizes writes the result at all sizes.
            is_last = first + count == self._stated["tensors"][inputs[0]]["shape"][1]
            return (
                [(inputs[0], made), *(scratch if first else [])],
                [*scratch, *((each, None) for each in outputs if is_last)],
                (),
            )
        if not made or not self._is_placed(counted):  # rows that there are at other sizes alone
            return [], [], ()
        self._cut.update(outputs)
        reads: list[tuple[int, range | None]] = []
        for position, index in enumerate(inputs):
            rows = self._read(number, position, made) if self._is_placed(index) else None
            if rows is not None:
                self._cut.add(index)
            reads.append((index, rows))
        return reads, [*((each, made) for each in outputs), *scratch], ()

    def _made(self, step: Root) -> tuple[list[int], list[PlacedRows]]:
        """Return the results that a step writes, and parts of others that it writes.

        What a copy would move to where it lies already stays as it is: its result is a view of
        that, and of the parts beside it that are moved there.
        """
        outputs: list[int] = list(step.get("outputs") or ())
        if step["kernel_type"] != "Copy" or step["kernel"].get("fill"):
            return outputs, []
        made: list[int] = []
        parts: list[PlacedRows] = []
        for number, index in enumerate(outputs):
            moves = [each for each in step["kernel"]["moves"] if each.get("output", 0) == number]
            moved = [each for each in moves if not self._is_in_place(step, each)]
            if len(moved) == len(moves) or not all(map(_is_one_stretch, moved)):
                made.append(index)
                continue
            tensor = self._tensors[index]
            item = _ITEM_BYTES[tensor["type"]]
            for each in moved:
                size = item * math.prod(each.get("shape") or ())
                begin = tensor["offset"] + item * each.get("output_start", 0)
                name = f"{tensor['name']} (part {len(self._parts)})"
                memory = self._root["memories"][tensor["memory"]]["name"]
                if size:
                    parts.append(PlacedRows(name, memory, size, (begin,)))
                    self._parts.append(parts[-1])
        return made, parts

    def _is_in_place(self, step: Root, move: Root) -> bool:
        """Tell whether a copy would move elements to where they lie."""
        source = self._tensors[step["inputs"][move.get("input", 0)]]
        result = self._tensors[step["outputs"][move.get("output", 0)]]
        if any(each["place"] != "memory" or each.get("rows") for each in (source, result)):
            return False
        item = _ITEM_BYTES[source["type"]]
        begins = (
            source["offset"] + item * move.get("input_start", 0),
            result["offset"] + item * move.get("output_start", 0),
        )
        axes = zip(
            move.get("shape") or (), move.get("input_strides") or (),
            move.get("output_strides") or (), strict=True,
        )  # fmt: skip
        return (
            source["memory"] == result["memory"]
            and begins[0] == begins[1]
            and all(length == 1 or one == other for length, one, other in axes)
        )

    def _takes_rows(self, number: int) -> bool:
        """Tell whether a step adds up rows of its first input, at every size."""
        step = self._stated["steps"][number]
        kernel = step["kernel"]
        result = self._stated["tensors"][step["outputs"][0]]["shape"]
        if step["kernel_type"] == "Pool2D":
            return bool(kernel["kind"] == "average" and result[1] == 1)
        is_sum = step["kernel_type"] == "Reduce" and kernel["function"] in _SUMS
        return is_sum and 1 in (kernel.get("axes") or ())

    def _read(self, number: int, position: int, made: range) -> range | None:
        """Return the rows of an input that rows of the result depend on, None for all of it."""
        step = self._root["steps"][number]
        kind, kernel = step["kernel_type"], step["kernel"]
        shape = self._shape(step["inputs"][position])
        result = self._shape(step["outputs"][0])
        if len(shape) < 2 or shape[0] != 1:
            return None
        is_alike = len(shape) == len(result) and shape[1] == result[1]
        if kind in ("Conv2D", "DepthwiseConv2D", "Pool2D", "TransposedConv2D"):
            if position == 0:
                return _windows(kind, kernel, self._taps(step), made, shape[1])
            return made if position == _ADDEND and is_alike else None
        if kind == "Resize2D":
            tables = (kernel.get("row_low"), kernel.get("row_high"))
            each = [taps[row] for taps in tables if taps for row in made]
            return range(min(each), min(max(each) + 1, shape[1]))
        if kind == "Copy":
            return self._copied(number, position, made)
        if kind == "FullyConnected":
            return made if is_alike and len(result) > 2 and position in (0, _ADDEND) else None
        if kind == "Attention":
            has_rows = shape[1] == result[1] and len(result) > 2 and position in (0, _ADDEND)
            return made if has_rows else None
        if kind == "BlockProduct":
            return made if is_alike and len(result) > 2 and position == 0 else None
        if kind == "ArgReduce":  # the result may have lost the last axis
            is_last = kernel.get("axis", 0) + 1 == len(shape) > 2
            return made if is_last and len(result) > 1 and shape[1] == result[1] else None
        return made if is_alike and kind in _KEEPING else None

    def _taps(self, step: Root) -> int:
        """Return the rows of a step's window."""
        stated = step["kernel"].get("window") or step["kernel"].get("kernel")
        if stated:
            return int(stated[0])
        return self._shape(step["inputs"][_FILTER])[1]

    def _copied(self, number: int, position: int, made: range) -> range:
        """Return the rows that a copy moves some rows of its result from."""
        if (number, position) not in self._moved:
            self._moved[number, position] = self._sources(number, position)
        by_row = [self._moved[number, position][row] for row in made]
        some = [each for each in by_row if each[0] < each[1]]
        if not some:
            return range(0)
        return range(min(low for low, _ in some), max(high for _, high in some))

    def _sources(self, number: int, position: int) -> list[tuple[int, int]]:
        """Return for each row of a copy's result the rows of an input that it is made of."""
        step = self._root["steps"][number]
        source, result = step["inputs"][position], step["outputs"][0]
        num_rows, limit = self._num_rows(result), self._num_rows(source)
        low = np.full(num_rows, limit, np.int64)
        high = np.zeros(num_rows, np.int64)
        for move in step["kernel"].get("moves") or ():
            if move["input"] != position:
                continue
            shape = move.get("shape") or ()
            to = _elements(move["output_start"], move.get("output_strides") or (), shape)
            of = _elements(move["input_start"], move.get("input_strides") or (), shape)
            to //= self._elements(result) // num_rows
            of //= self._elements(source) // limit
            np.minimum.at(low, to, of)
            np.maximum.at(high, to, of + 1)
        return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]

    def _elements(self, index: int) -> int:
        return math.prod(self._shape(index))


def _grown(name: str) -> str:
    """Return the name of what a run leaves in a state that grows."""
    return f"{name} (grown)"


def _is_one_stretch(move: Root) -> bool:
    """Tell whether a move fills its part of the result without gaps."""
    expected = 1
    axes = zip(move.get("shape") or (), move.get("output_strides") or (), strict=True)
    for length, stride in reversed(list(axes)):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def _elements(start: int, strides: Sequence[int], shape: Sequence[int]) -> "np.ndarray[Any, Any]":
    """Return the indices of the elements that a move touches, in its order."""
    found = np.array([start], np.int64)
    for stride, length in zip(strides, shape, strict=True):
        found = (found[:, None] + stride * np.arange(length, dtype=np.int64)).reshape(-1)
    return found


def _windows(kind: str, kernel: Root, taps: int, made: range, extent: int) -> range:
    """Return the rows under the windows of some rows, or whose transposed windows reach them."""
    stride = int((kernel.get("strides") or (1,))[0])
    dilation = int((kernel.get("dilations") or (1,))[0])
    above = int((kernel.get("padding") or (0,))[0])
    reach = (taps - 1) * dilation
    if kind == "TransposedConv2D":
        first = -((reach - made.start - above) // stride)
        stop = (made.stop - 1 + above) // stride + 1
    else:
        first = made.start * stride - above
        stop = (made.stop - 1) * stride - above + reach + 1
    first = min(max(first, 0), extent)
    return range(first, min(max(stop, first), extent))
