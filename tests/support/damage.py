"""Copies of a file with damage of many kinds, as accident or malice would do it."""

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError

_TELLING = (0, 1, 2, 4, 8, 127, 128, 255, 2**15, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 1,
            2**41, 2**62, 2**63 - 1, 2**64 - 1)  # fmt: skip
"""Numbers at which sums and products of sizes change their mind."""

_WORDS = ("-1", "0", "1", "3", "7.5", "1e999", "-0.0", "NaN", "2147483648", "9223372036854775807",
          "18446744073709551616", "9" * 400, "null", "true", '""', '"x"', "[]", "{}",
          "[[]]")  # fmt: skip

_VALUES: Final[tuple[Any, ...]] = (
    -1, 0, 1, 2, 7, 64, 2**31, 2**53, 2**62, 2**63 - 1, 2**64, 10**300, 0.5, 4.7, -1.5, 1e300,
    None, True, False, "", "x", "a\x1b[31mb", "../x", [], {}, [1], ["x", "x"], {"x": 1},
)  # fmt: skip


def _place(data: bytearray, draw: random.Random) -> int:
    """Return a place, half of the time near an end: weights, in the middle, may be anything."""
    size = len(data)
    near = draw.choice((size, size, min(size, 512), -min(size, 512)))
    return size - 1 - draw.randrange(-near) if near < 0 else draw.randrange(near)


def _flip_bits(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.choice((1, 1, 1, 2, 2, 4, 8))):
        data[_place(data, draw)] ^= 1 << draw.randrange(8)


def _overwrite(data: bytearray, draw: random.Random) -> None:
    size = draw.choice((1, 1, 2, 4, 8))
    place = _place(data, draw) // size * size
    number = draw.choice(_TELLING) * draw.choice((1, 1, 1, -1))
    data[place : place + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")


def _scribble(data: bytearray, draw: random.Random) -> None:
    place = _place(data, draw)
    data[place : place + draw.randrange(1, 64)] = draw.randbytes(draw.randrange(1, 64))


def _truncate(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def _splice(data: bytearray, draw: random.Random) -> None:
    """Copy one stretch over another or between others, or leave it out."""
    begin, place = _place(data, draw), _place(data, draw)
    stretch = data[begin : begin + draw.choice((1, 4, 16, 64, 256))]
    end = place + draw.choice((0, len(stretch), len(stretch) // 2))
    data[place:end] = draw.choice((stretch, stretch, bytearray()))


def _reword(data: bytearray, draw: random.Random) -> None:
    """Put another word in the place of a number or a name in quotes."""
    words = list(re.finditer(rb'-?\d+(?:\.\d+)?|"[^"]*"', bytes(data)))
    for found in draw.sample(words, min(1, len(words))):
        data[found.start() : found.end()] = draw.choice(_WORDS).encode()


def _drop_line(data: bytearray, draw: random.Random) -> None:
    lines = bytes(data).splitlines(keepends=True)
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[one : one + 1] = draw.choice(([], [lines[other]], [lines[one], lines[other]]))
    data[:] = b"".join(lines)


def _edit_json(data: bytearray, draw: random.Random) -> None:
    """Change, drop, add or move a value of a document; other text stays."""
    try:
        root = json.loads(bytes(data))
    except ValueError:
        return
    for _ in range(draw.choice((1, 1, 2))):
        places = list(_places(root))
        if not places:
            break
        holder, key = draw.choice(places)
        match draw.randrange(5):
            case 0:
                del holder[key]
            case 1:
                source, chosen = draw.choice(places)
                holder[key] = json.loads(json.dumps(source[chosen]))
            case 2 if isinstance(holder, list):
                holder.insert(key, holder[key])
            case 2:
                holder[f"{key}{draw.choice(('', '2'))}"] = draw.choice(_VALUES)
            case _:
                holder[key] = draw.choice(_VALUES)
    data[:] = json.dumps(root).encode()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return the holder and the key of every value in a document."""
    if not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    found = [(value, key) for key in keys]
    return found + [place for key in keys for place in _places(value[key])]


def _edit_onnx(data: bytearray, draw: random.Random) -> None:
    """Change, drop or repeat fields of a model in ONNX's format; other bytes stay."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(bytes(data))
    except DecodeError:
        return
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        messages = list(_messages(model))
        message = draw.choice(messages)
        fields = message.ListFields()
        if not fields:
            continue
        field, value = draw.choice(fields)
        if draw.random() < 0.1:
            message.ClearField(field.name)
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            _edit_list(value, draw)
        elif field.message_type is None:
            with suppress(TypeError, ValueError):  # out of the field's range
                setattr(message, field.name, _another(value, messages, draw))
    data[:] = model.SerializeToString()


def _edit_list(values: Any, draw: random.Random) -> None:
    index = draw.randrange(len(values))
    match draw.randrange(3):
        case 0:
            del values[index]
        case 1:
            values.append(values[index])
        case _ if isinstance(values[index], str | bytes | int | float):
            with suppress(TypeError, ValueError):
                values[index] = _another(values[index], [], draw)
        case _:
            values[index].CopyFrom(draw.choice(values))


def _another(value: Any, messages: Sequence[Any], draw: random.Random) -> Any:
    """Return another value of the same type, often one that the model has elsewhere."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return draw.choice((0.0, -1.0, 1e38, float("inf"), float("nan"), 0.5 * value))
    if isinstance(value, int):
        near = (value - 1, value + 1, 2 * value, -value)
        return draw.choice((*near, *_TELLING, -draw.choice(_TELLING)))
    if isinstance(value, bytes):
        return draw.choice((b"", value[1:], value * 2, draw.randbytes(len(value))))
    names = [text for each in messages for _, text in each.ListFields() if isinstance(text, str)]
    return draw.choice((*names, "", "x", f"{value}2", "a\x1b[31mb"))


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message and all below it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if isinstance(value, Sequence) else (value,):
                yield from _messages(each)


_TEXTS: Final = frozenset({".csv", ".json", ".txt"})

Damage = Callable[[bytearray, random.Random], None]
_BINARY: Final[tuple[Damage, ...]] = (
    _flip_bits, _flip_bits, _flip_bits, _overwrite, _overwrite, _scribble, _truncate, _splice,
)  # fmt: skip
_ONNX: Final[tuple[Damage, ...]] = (*_BINARY, *(_edit_onnx,) * 16)
_TEXT: Final[tuple[Damage, ...]] = (
    _flip_bits, _overwrite, _truncate, _splice, _reword, _reword, _drop_line, _edit_json,
    _edit_json, _edit_json,
)  # fmt: skip


def damaged(data: bytes, draw: random.Random, suffix: str) -> bytes:
    """Return a copy with damage of one kind, now and then of two.

    Args:
        data: The whole file.
        draw: Chooses.
        suffix: Of the file's name: text is damaged as text, a model as a model too.
    """
    copy = bytearray(data)
    kinds = _TEXT if suffix in _TEXTS else _ONNX if suffix == ".onnx" else _BINARY
    for damage in draw.choices(kinds, k=draw.choice((1, 1, 1, 1, 2))):
        if copy:
            damage(copy, draw)
    return bytes(copy)


def flipped(data: bytes, count: int, seed: int, most: int = 8) -> Iterator[bytes]:
    """Yield copies with 1 to `most` bits turned, the same ones for the same seed."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        copy = bytearray(data)
        for position in generator.integers(0, 8 * len(data), generator.integers(1, most + 1)):
            copy[position // 8] ^= 1 << (position % 8)
        yield bytes(copy)
