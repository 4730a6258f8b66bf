"""The part of a plan file that says how a program runs in bands, and its lines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arenite.planner.planfile import values
from arenite.planner.planfile.errors import (
    DuplicateNameError,
    InconsistentError,
    OutOfRangeError,
    UnknownMemoryError,
)
from arenite.planner.planfile.values import Object
from arenite.planner.programs.run import PlacedRows, Rows, Run, TouchingTurn
from arenite.planner.tensors import Memory

_FIELDS = ("order", "strips", "regions", "inputs", "outputs", "tensors", "turns")
_MOST_ROWS = 1 << 22
"""Rows that all turns may touch: to check them takes time in proportion."""


@dataclass(frozen=True, slots=True)
class StripsOf:
    """Steps of the model that run as one, in strips of columns.

    Attributes:
        last: Name of the last step, and of all of them as one step.
    """

    first: str
    last: str
    columns: int


@dataclass(frozen=True, slots=True)
class RegionOf:
    """Steps that run in bands of rows.

    Attributes:
        rows: Rows that are asked of its results at a time.
        inner_rows: Rows that every other step makes at a time, if as many are needed.
        columns: Most columns of a strip of its result that lies between others; 0 if it runs in
            no strips.
    """

    first: str
    last: str
    rows: int
    inner_rows: int
    columns: int = 0


@dataclass(frozen=True, slots=True)
class Bands:
    """How a program runs in bands.

    Attributes:
        order: Names of the steps, each once, in the order in which they would run whole.
        strips: What runs in strips.
        regions: What runs in bands, in order.
        run: The rows that each turn reads and writes, and their places.
    """

    order: tuple[str, ...]
    strips: tuple[StripsOf, ...]
    regions: tuple[RegionOf, ...]
    run: Run


def bands_text(bands: Bands, memory: str) -> str:
    """Return it as JSON, a tensor or a turn a line.

    Args:
        bands: The field `bands`.
        memory: The memory of tensors that state none.
    """
    strips = [
        {"first": each.first, "last": each.last, "columns": each.columns} for each in bands.strips
    ]
    regions = [
        {
            "first": each.first, "last": each.last, "rows": each.rows,
            "inner_rows": each.inner_rows, **({"columns": each.columns} if each.columns else {}),
        }
        for each in bands.regions
    ]  # fmt: skip
    places = {tensor.name: place for place, tensor in enumerate(bands.run.tensors)}
    parts = {
        "order": _lines(bands.order),
        "strips": _lines(strips),
        "regions": _lines(regions),
        "inputs": _dump(list(bands.run.inputs)),
        "outputs": _dump(list(bands.run.outputs)),
        "tensors": _lines([_tensor_entry(tensor, memory) for tensor in bands.run.tensors]),
        "turns": _lines([_turn_entry(turn, places) for turn in bands.run.turns]),
    }
    return "{\n" + ",\n".join(f"  {_dump(key)}: {text}" for key, text in parts.items()) + "\n }"


def _tensor_entry(tensor: PlacedRows, memory: str) -> dict[str, object]:
    entry: dict[str, object] = {"name": tensor.name}
    if tensor.memory != memory:
        entry["memory"] = tensor.memory
    return {**entry, "row_bytes": tensor.row_bytes, "rows": list(tensor.offsets)}


def _turn_entry(turn: TouchingTurn, places: Mapping[str, int]) -> dict[str, object]:
    return {
        "step": turn.step, "first": turn.first, "rows": turn.rows,
        "reads": [[places[name], first, stop] for name, first, stop in turn.reads],
        "writes": [[places[name], first, stop] for name, first, stop in turn.writes],
    }  # fmt: skip


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _lines(items: Sequence[object]) -> str:
    return "[\n" + ",\n".join(f"   {_dump(each)}" for each in items) + "\n  ]" if items else "[]"


def read_bands(entry: Object, memories: Sequence[Memory], num_turns: int) -> Bands:
    """Return the bands of an untrusted document, each field checked.

    Args:
        entry: The field `bands`.
        memories: Those of the file.
        num_turns: Entries of its order.

    Raises:
        PlanFileError: By the subclass of the first thing that is wrong.
    """
    values.check_fields(entry, "bands", _FIELDS)
    order = values.texts(entry, "order")
    if len(set(order)) != len(order):
        raise DuplicateNameError("order of bands names a step twice")
    places = {name: place for place, name in enumerate(order)}
    strips = tuple(_strips(item, places) for item in values.items(entry, "strips"))
    regions = tuple(_region(item, places) for item in values.items(entry, "regions"))
    for above, below in pairwise(regions):
        if places[below.first] <= places[above.last]:
            raise InconsistentError(
                f"the region of {below.first!r} begins before that of {above.first!r} ends"
            )
    return Bands(order, strips, regions, _run(entry, memories, num_turns))


def _strips(item: object, places: Mapping[str, int]) -> StripsOf:
    entry = values.as_object(item, "an item of strips")
    values.check_fields(entry, "an item of strips", ("first", "last", "columns"))
    first, last = _ends(entry, places)
    return StripsOf(first, last, values.number(entry, "columns", 1))


def _region(item: object, places: Mapping[str, int]) -> RegionOf:
    entry = values.as_object(item, "a region")
    values.check_fields(entry, "a region", ("first", "last", "rows", "inner_rows"), ("columns",))
    first, last = _ends(entry, places)
    rows, inner = (values.number(entry, name, 1) for name in ("rows", "inner_rows"))
    if max(rows, inner) > _MOST_ROWS:
        raise OutOfRangeError(f"bands of {max(rows, inner)} rows, expected at most {_MOST_ROWS}")
    columns = values.number(entry, "columns", 1) if "columns" in entry else 0
    return RegionOf(first, last, rows, inner, columns)


def _ends(entry: Object, places: Mapping[str, int]) -> tuple[str, str]:
    first, last = values.text(entry, "first"), values.text(entry, "last")
    for name in (first, last):
        if name not in places:
            raise InconsistentError(f"step {name!r} is not in the order of bands")
    if places[first] > places[last]:
        raise InconsistentError(f"step {first!r} is behind {last!r} in the order of bands")
    return first, last


def _run(entry: Object, memories: Sequence[Memory], num_turns: int) -> Run:
    known = {memory.name for memory in memories}
    tensors: dict[str, PlacedRows] = {}
    for item in values.items(entry, "tensors"):
        tensor = _tensor(item, memories[0].name)
        if tensor.name in tensors:
            raise DuplicateNameError(f"two tensors are named {tensor.name!r}")
        if tensor.memory not in known:
            raise UnknownMemoryError(
                f"tensor {tensor.name!r} lies in {tensor.memory!r}, which memories does not have"
            )
        tensors[tensor.name] = tensor
    turns = tuple(
        _turn(item, f"turn {number}", tuple(tensors.values()))
        for number, item in enumerate(values.items(entry, "turns"))
    )
    if len(turns) != num_turns:
        raise InconsistentError(f"{len(turns)} turns, order has {num_turns}")
    touched = (rows for turn in turns for rows in (*turn.reads, *turn.writes))
    count = sum(rows.stop - rows.first for rows in touched)
    if count > _MOST_ROWS:
        raise OutOfRangeError(f"the turns touch {count} rows, expected at most {_MOST_ROWS}")
    inputs, outputs = values.texts(entry, "inputs"), values.texts(entry, "outputs")
    for name in (*inputs, *outputs):
        if name not in tensors:
            raise InconsistentError(f"{name!r} is not among the tensors of bands")
    return Run(tuple(tensors.values()), turns, inputs, outputs)


def _tensor(item: object, memory: str) -> PlacedRows:
    entry = values.as_object(item, "a tensor of bands")
    values.check_fields(entry, "a tensor of bands", ("name", "row_bytes", "rows"), ("memory",))
    offsets = [values.as_number(each, "a row") for each in values.items(entry, "rows")]
    return PlacedRows(
        values.text(entry, "name"),
        values.text(entry, "memory") if "memory" in entry else memory,
        values.number(entry, "row_bytes", 1),
        tuple(offsets),
    )


def _turn(item: object, where: str, tensors: Sequence[PlacedRows]) -> TouchingTurn:
    entry = values.as_object(item, where)
    values.check_fields(entry, where, ("step", "first", "rows", "reads", "writes"))
    return TouchingTurn(
        values.text(entry, "step"),
        values.number(entry, "first"),
        values.number(entry, "rows"),
        tuple(_touched(entry, "reads", where, tensors)),
        tuple(_touched(entry, "writes", where, tensors)),
    )


def _touched(
    entry: Object, field: str, where: str, tensors: Sequence[PlacedRows]
) -> Iterator[Rows]:
    for item in values.items(entry, field):
        if not isinstance(item, list) or len(item) != 3:
            raise values.wrong_type(f"an item of {field} of {where}", item, "a list of 3 numbers")
        place, first, stop = (values.as_number(each, f"a number of {where}") for each in item)
        if place >= len(tensors):
            raise OutOfRangeError(f"{where}: tensor {place} of {len(tensors)}")
        tensor = tensors[place]
        if not first < stop <= len(tensor.offsets):
            raise OutOfRangeError(
                f"{where}: rows {first} to {stop} of {tensor.name!r}, "
                f"which has {len(tensor.offsets)}"
            )
        yield Rows(tensor.name, first, stop)
