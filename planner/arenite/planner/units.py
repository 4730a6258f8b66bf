"""Byte sizes as people write them: `64KiB` in, exact bytes out."""

import re
from fractions import Fraction

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_size(text: str) -> int:
    """Return the bytes that `text` names, such as `65536`, `64KiB` or `1.5MB`.

    Raises:
        ValueError: The text is not a size, or not a whole number of bytes.
    """
    match = _PATTERN.fullmatch(text)
    if match is not None and match[2].lower() in {"k", "m", "g", "t"}:
        number, unit = match[1], match[2].upper()
        raise ValueError(
            f"{text!r} is not a size, as its unit has two readings; write {number}{unit}iB for "
            f"powers of 1024 or {number}{unit}B for powers of 1000"
        )
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError(f"{text!r} is not a size; write 65536, 64KiB or 1.5MB")
    size = Fraction(match[1]) * _UNITS[match[2].lower()]
    if size.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return size.numerator


def format_size(size: int) -> str:
    """Return `size` bytes in the largest binary unit that keeps three digits."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{size} B" if unit == "B" else f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


def align_up(value: int, alignment: int) -> int:
    """Return the least multiple of `alignment` that is at least `value`."""
    return -(-value // alignment) * alignment
