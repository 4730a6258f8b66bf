"""Read a placement instance: `id,lower,upper,size`, half-open lifetimes.

The format of google/minimalloc, whose instances have their capacity in the file name. A column
`alignment`, which is ours, may follow. So may `offset`: there programs that place the records
write their answer, so it is ignored.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from arenite.planner.errors import ModelError, ModelFormatError, about_file
from arenite.planner.files import read_model
from arenite.planner.placement.problem import Problem, UsageRecord

_REQUIRED = ("id", "lower", "upper", "size")
_KNOWN = (*_REQUIRED, "alignment", "offset")
_MAX_DIGITS = 18


def read_csv(path: Path | str) -> Problem:
    """Return the records in the order of the file.

    A number before the suffix, as in `A.1048576.csv`, is the capacity if the columns are those of
    minimalloc, without `alignment`.

    Raises:
        ModelFormatError: The file cannot be read, a column is missing or unknown, or a
            row is malformed; says which line.

    Cost: time and memory O(rows).
    """
    path = Path(path)
    with about_file(path):
        records, is_minimalloc = _parsed(read_model(path))
    stated = path.with_suffix("").suffix[1:]
    has_capacity = is_minimalloc and _is_number(stated)
    return Problem.of(records, capacity=_number(stated) if has_capacity else None)


def _parsed(data: bytes) -> tuple[tuple[UsageRecord, ...], bool]:
    """Return the records, and whether the columns are those of minimalloc."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"byte {error.start} is not UTF-8") from error
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    try:
        return _records(rows)
    except (ModelError, csv.Error) as error:
        raise ModelFormatError(f"line {rows.line_num}: {error}") from error


def _records(rows: Iterator[list[str]]) -> tuple[tuple[UsageRecord, ...], bool]:
    columns = next(rows, [])
    _check_columns(columns)
    records: dict[str, UsageRecord] = {}
    for row in rows:
        if not row:
            continue
        if len(row) != len(columns):
            raise ModelError(f"{len(row)} fields where the header has {len(columns)}")
        record = _record(dict(zip(columns, row, strict=True)))
        if record.name in records:
            raise ModelError(f"the id {record.name!r} is used a second time")
        records[record.name] = record
    return tuple(records.values()), "alignment" not in columns


def _check_columns(columns: list[str]) -> None:
    for column in columns:
        if column not in _KNOWN:
            raise ModelError(f"unknown column {column!r}; known: {', '.join(_KNOWN)}")
        if columns.count(column) > 1:
            raise ModelError(f"column {column!r} appears twice")
    for column in _REQUIRED:
        if column not in columns:
            raise ModelError(f"column {column!r} is missing; needed: {', '.join(_REQUIRED)}")


def _record(row: dict[str, str]) -> UsageRecord:
    return UsageRecord(
        name=row["id"],
        size=_number(row["size"]),
        start=_number(row["lower"]),
        end=_number(row["upper"]),
        alignment=_number(row.get("alignment", "1")),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def _number(text: str) -> int:
    if not _is_number(text):
        raise ModelError(f"{text!r} is not a whole number of at most {_MAX_DIGITS} digits")
    return int(text)
