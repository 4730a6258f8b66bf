"""Records and turns as a program file has them: packed, and in loops.

What is put together, read and edited has a list of each: `records`, with `name`, `memory`,
`offset`, `size`, `start` and `end`; and `turns`, with `step`, `first` and `count`.
`docs/program-file.md` says what becomes of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from arenite.runtime.program.loops import Loop, Turn, in_loops, written_out

Root: TypeAlias = Mapping[str, Any]

_RECORD = {"name", "memory", "offset", "size", "start", "end"}
_TURN = {"step", "first", "count"}
_MASK = (1 << 64) - 1


def packed(root: Root) -> dict[str, Any]:
    """Return the root table of a program with its records and turns as the schema has them.

    Raises:
        ValueError: One has a field of another name, or a number that the file has no room for.
    """
    stored = dict(root)
    if "records" in stored:
        owners, data = _packed_records(stored["records"])
        stored |= {"owners": owners, "records": list(data)}
    if stored.get("turns"):
        for each in stored["turns"]:
            _check(each, _TURN, "turn")
        loops = in_loops(
            [
                Turn(each["step"], each.get("first", 0), each.get("count", 0))
                for each in stored["turns"]
            ]
        )
        stored["loops"] = [{"turns": len(each.turns), "times": each.times} for each in loops]
        stored["turns"] = [
            {"step": turn.step, "first": turn.first, "count": turn.rows, "stride": turn.stride}
            for each in loops
            for turn in each.turns
        ]
    return stored


def unpacked(stored: Root) -> dict[str, Any]:
    """Return the root table of a program that the core has accepted, with lists of both."""
    root = dict(stored)
    root["records"] = list(_records(stored))
    loops, turns = root.pop("loops", None) or (), iter(root.pop("turns", None) or ())
    del root["owners"]
    if loops:
        root["turns"] = [
            {"step": turn.step, "first": turn.first, "count": turn.rows}
            for each in loops
            for turn in written_out(_loop(each, turns))
        ]
    return root


def _loop(stored: Root, turns: Iterator[Root]) -> Loop:
    some = (next(turns) for _ in range(stored["turns"]))
    return Loop(
        tuple(Turn(each["step"], each["first"], each["count"], each["stride"]) for each in some),
        stored["times"],
    )


def _check(entry: Root, fields: set[str], what: str) -> None:
    if unknown := entry.keys() - fields:
        raise ValueError(f"a {what} has an unknown field {min(unknown)!r}")


def _packed_records(records: Sequence[Root]) -> tuple[list[dict[str, Any]], bytes]:
    """Return the owners of records, and the records by the turn at which they begin."""
    owners: dict[tuple[str, int], int] = {}
    lasts: dict[int, tuple[int, int]] = {}
    data = bytearray()
    begun = 0
    for each in sorted(records, key=lambda each: int(each.get("start", 0))):
        _check(each, _RECORD, "record")
        if "name" not in each:
            raise ValueError("a record has no name")
        offset, size = _within(each, "offset", 64), _within(each, "size", 64)
        start, end = _within(each, "start", 32), _within(each, "end", 32)
        owner = owners.setdefault((each["name"], _within(each, "memory", 8)), len(owners))
        last_offset, last_size = lasts.get(owner, (0, 0))
        data += _number(owner)
        data += _number(start - begun)
        for difference in (end - start, size - last_size, offset - last_offset):
            data += _number(_zigzag(difference))
        lasts[owner] = (offset, size)
        begun = start
    return [{"name": name, "memory": memory} for name, memory in owners], bytes(data)


def _within(entry: Root, field: str, bits: int) -> int:
    value = int(entry.get(field, 0))
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{field} of record {entry['name']!r} is {value}")
    return value


def _zigzag(difference: int) -> int:
    """Return a difference modulo 2^64 as a number that is small where it is near 0."""
    difference &= _MASK
    if difference >> 63:
        difference -= 1 << 64
    return 2 * difference if difference >= 0 else -2 * difference - 1


def _number(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _records(stored: Root) -> Iterator[dict[str, Any]]:
    data = iter(stored["records"])
    lasts: dict[int, tuple[int, int]] = {}
    start = 0
    for byte in data:
        owner = _read(byte, data)
        start += _read(next(data), data)
        length, more, further = (_difference(_read(next(data), data)) for _ in range(3))
        offset, size = lasts.get(owner, (0, 0))
        size, offset = (size + more) & _MASK, (offset + further) & _MASK
        lasts[owner] = (offset, size)
        yield {
            **stored["owners"][owner], "offset": offset, "size": size, "start": start,
            "end": start + length,
        }  # fmt: skip


def _read(byte: int, data: Iterator[int]) -> int:
    found, shift = byte & 0x7F, 7
    while byte & 0x80:
        byte = next(data)
        found |= (byte & 0x7F) << shift
        shift += 7
    return found


def _difference(number: int) -> int:
    return -(number + 1 >> 1) if number & 1 else number >> 1
