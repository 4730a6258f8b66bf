"""Turns that come again and again, as loops."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

_LONGEST = 256
"""Turns of the longest loop that is looked for."""


_WIDEST = (1 << 31) - 1
"""Rows by which a turn moves on, at most."""


class FileTurn(NamedTuple):
    """Rows of a step.

    Attributes:
        step: Index of the step.
        first: The first of the rows.
        rows: Their number; 0 for the whole step.
        stride: By how many rows it moves on each time that its loop comes round.
    """

    step: int
    first: int
    rows: int
    stride: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """Turns that run one after another, several times.

    Attributes:
        turns: The turns as they run the first time.
        times: Number of times that they run.
    """

    turns: tuple[FileTurn, ...]
    times: int


def in_loops(turns: Sequence[FileTurn]) -> tuple[Loop, ...]:
    """Return turns as loops: at each turn the one that saves most, if one does.

    What does not come again is a loop that runs once.

    Cost: O(turns x places at which the same step makes as many rows, up to a distance).
    """
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, turn in enumerate(turns):
        places[turn.step, turn.rows].append(place)
    following = [0] * len(turns)  # index in `places` of the next turn like this one
    for alike in places.values():
        for index, place in enumerate(alike):
            following[place] = index + 1
    found: list[Loop] = []
    once: list[FileTurn] = []
    place = 0
    while place < len(turns):
        length, times = 1, 1
        alike = places[turns[place].step, turns[place].rows]
        for index in range(following[place], len(alike)):
            period = alike[index] - place
            if period > _LONGEST:
                break
            rounds = _rounds(turns, place, period)
            if (rounds - 1) * period - 1 > (times - 1) * length:
                length, times = period, rounds
        if times == 1:
            once.append(turns[place])
        else:
            if once:
                found.append(Loop(tuple(once), 1))
                once = []
            found.append(_loop(turns[place : place + 2 * length], length, times))
        place += length * times
    return (*found, Loop(tuple(once), 1)) if once else tuple(found)


def _rounds(turns: Sequence[FileTurn], place: int, period: int) -> int:
    """Return how often some turns run, each moving on by the same number of rows."""
    rounds = 1
    while True:
        end = place + (rounds + 1) * period
        if end > len(turns):
            return rounds
        for each in range(end - period, end):
            now, before = turns[each], turns[each - period]
            if (now.step, now.rows) != (before.step, before.rows):
                return rounds
            stride = now.first - before.first
            if abs(stride) > _WIDEST:
                return rounds
            if rounds > 1 and stride != before.first - turns[each - 2 * period].first:
                return rounds
        rounds += 1


def _loop(twice: Sequence[FileTurn], length: int, times: int) -> Loop:
    first, second = twice[:length], twice[length:]
    return Loop(
        tuple(
            turn._replace(stride=then.first - turn.first)
            for turn, then in zip(first, second, strict=True)
        ),
        times,
    )


def written_out(loop: Loop) -> Iterator[FileTurn]:
    """Yield the turns of a loop as they run."""
    for number in range(loop.times):
        for turn in loop.turns:
            yield turn._replace(first=turn.first + number * turn.stride, stride=0)


Root: TypeAlias = Mapping[str, Any]

_RECORD = {"name", "memory", "offset", "size", "start", "end"}
_TURN = {"step", "first", "count"}
_PROGRAMS = {"subranges", "inner"}
"""Fields that are programs themselves."""
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
                FileTurn(each["step"], each.get("first", 0), each.get("count", 0))
                for each in stored["turns"]
            ]
        )
        stored["loops"] = [{"turns": len(each.turns), "times": each.times} for each in loops]
        stored["turns"] = [
            {"step": turn.step, "first": turn.first, "count": turn.rows, "stride": turn.stride}
            for each in loops
            for turn in each.turns
        ]
    for more in _PROGRAMS & stored.keys():
        stored[more] = [packed(each) for each in stored[more]]
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
            for turn in written_out(_stored_loop(each, turns))
        ]
    for more in _PROGRAMS & root.keys():
        root[more] = [unpacked(each) for each in root[more]]
    return root


def _stored_loop(stored: Root, turns: Iterator[Root]) -> Loop:
    some = (next(turns) for _ in range(stored["turns"]))
    return Loop(
        tuple(
            FileTurn(each["step"], each["first"], each["count"], each["stride"]) for each in some
        ),
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
