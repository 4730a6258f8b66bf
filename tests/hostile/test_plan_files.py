"""Plan files that somebody damaged, each refused with the error for its damage."""

import contextlib
import copy
import json
import os
import random
from pathlib import Path

import pytest

from arenite.planner import planfile
from arenite.planner.errors import AreniteError, PlanFileError
from arenite.planner.placement.verification import (
    MisalignedError,
    NegativeOffsetError,
    OverCapacityError,
    OverlapError,
    WrongBoundError,
    WrongHeightError,
)
from arenite.planner.planfile import PlanFile, errors

SOUND = {
    "format": "arenite-plan",
    "version": 2,
    "model": {"name": "m.onnx", "sha256": "0" * 64, "dims": {"n": 1}, "shapes": {"x": [1, 2]}},
    "target": "generic",
    "boundary": "include",
    "alignment": 16,
    "aliases": [],
    "memories": [
        {
            "name": "arena",
            "capacity": 64,
            "alignment": 1,
            "writable": True,
            "height": 48,
            "lower_bound": 48,
        }
    ],
    "height": 48,
    "lower_bound": 48,
    "bound": "load",
    "optimal": True,
    "strategy": {"name": "s", "parameters": {}},
    "order": ["p", "q"],
    "records": [
        {"name": "a", "offset": 0, "size": 32, "start": 0, "end": 2, "tensors": ["a", "v"]},
        {"name": "b", "offset": 32, "size": 16, "start": 1, "end": 2, "tensors": ["b"]},
    ],
}


def read(tmp_path, data):
    path = tmp_path / "plan.json"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return planfile.read(path)


def test_the_sound_file_is_read(tmp_path):
    assert read(tmp_path, SOUND).plan.height == 48


@pytest.mark.parametrize(
    ("place", "value", "error"),
    [
        (("format",), "arenite", errors.NotAPlanFileError),
        (("version",), 1, errors.UnknownVersionError),
        (("version",), 3, errors.UnknownVersionError),
        (("version",), "2", errors.UnknownVersionError),
        (("version",), True, errors.UnknownVersionError),
        (("version",), 2.0, errors.UnknownVersionError),
        (("extra",), 1, errors.UnknownFieldError),
        (("model", "extra"), 1, errors.UnknownFieldError),
        (("records", 0, "extra"), 1, errors.UnknownFieldError),
        (("target",), 1, errors.WrongTypeError),
        (("boundary",), "inside", errors.WrongTypeError),
        (("aliases",), ["all"], errors.WrongTypeError),
        (("aliases",), ["views", "views"], errors.WrongTypeError),
        (("bound",), "guess", errors.WrongTypeError),
        (("optimal",), 1, errors.WrongTypeError),
        (("height",), 48.0, errors.WrongTypeError),
        (("height",), True, errors.WrongTypeError),
        (("records",), {}, errors.WrongTypeError),
        (("records", 0), [], (errors.WrongTypeError, "record 0 is list")),
        (("records", 0, "tensors"), "a", errors.WrongTypeError),
        (("records", 0, "tensors", 0), 1, (errors.WrongTypeError, "an item of tensors")),
        (("order",), None, errors.WrongTypeError),
        (("model", "sha256"), "0" * 63, errors.WrongTypeError),
        (("model", "sha256"), "G" * 64, errors.WrongTypeError),
        (("model", "shapes", "x"), [1, "2"], errors.WrongTypeError),
        (("strategy", "parameters"), {"p": [1]}, (errors.WrongTypeError, "p is list")),
        (("target",), "half \ud800", (errors.NotAPlanFileError, "not UTF-8")),
        (("order", 0), "half \ud800", (errors.NotAPlanFileError, "not UTF-8")),
        (("model", "dims"), {"half \ud800": 1}, (errors.NotAPlanFileError, "not UTF-8")),
        (
            ("strategy", "parameters"),
            {"p": "half \ud800"},
            (errors.NotAPlanFileError, "not UTF-8"),
        ),
        (("memories",), {}, errors.WrongTypeError),
        (("memories", 0), "arena", (errors.WrongTypeError, "memory 0 is str")),
        (("memories", 0, "name"), 1, errors.WrongTypeError),
        (("memories", 0, "name"), "", errors.WrongTypeError),
        (("memories", 0, "capacity"), "64", errors.WrongTypeError),
        (("memories", 0, "writable"), 1, errors.WrongTypeError),
        (("memories", 0, "height"), "48", errors.WrongTypeError),
        (("memories", 0, "lower_bound"), None, errors.WrongTypeError),
        (("memories", 0, "extra"), 1, errors.UnknownFieldError),
        (("records", 0, "memory"), 0, errors.WrongTypeError),
        (("records", 0, "memory"), "flash", (errors.UnknownMemoryError, "lies in 'flash'")),
        (("records", 1, "memory"), "", (errors.UnknownMemoryError, "lies in ''")),
        (("memories",), [], errors.OutOfRangeError),
        (("memories", 0, "alignment"), 24, errors.OutOfRangeError),
        (("memories", 0, "height"), -1, errors.OutOfRangeError),
        (("memories", 0, "lower_bound"), 1 << 63, errors.OutOfRangeError),
        (("memories", 0, "alignment"), 32, (errors.InconsistentError, "is aligned to 16")),
        (("alignment",), 0, errors.OutOfRangeError),
        (("alignment",), 24, errors.OutOfRangeError),
        (("memories", 0, "capacity"), -1, errors.OutOfRangeError),
        (("model", "dims", "n"), 0, errors.OutOfRangeError),
        (("records", 0, "size"), 0, errors.OutOfRangeError),
        (("records", 0, "size"), -32, errors.OutOfRangeError),
        (("records", 0, "size"), 1 << 63, errors.OutOfRangeError),
        (("records", 0, "offset"), 1 << 64, errors.OutOfRangeError),
        (("records", 0, "start"), -1, errors.OutOfRangeError),
        (("records", 0, "end"), 0, errors.OutOfRangeError),
        (("records", 0, "end"), 3, errors.OutOfRangeError),
        (("records", 1, "name"), "a", errors.DuplicateNameError),
        (("records", 1, "tensors"), ["v"], (errors.DuplicateNameError, "tensor 'v' is placed")),
        (("order",), ["p", "p"], errors.DuplicateNameError),
        (("height",), 64, errors.InconsistentError),
        (("lower_bound",), 47, errors.InconsistentError),
        (("lower_bound",), 49, errors.InconsistentError),
        (("memories", 0, "lower_bound"), 47, errors.InconsistentError),
        (("bound",), "search", errors.InconsistentError),
        (("optimal",), False, errors.InconsistentError),
        (("model", "weight_budget"), 5, errors.WrongTypeError),
        (("model", "weight_budget"), "lots", errors.WrongTypeError),
        (("model", "weight_budget"), "0", errors.WrongTypeError),
        (("model", "weight_budget"), "101%", errors.WrongTypeError),
        (("model", "weight_budget"), "10%,ahead", errors.WrongTypeError),
        (("model", "shapes"), [], errors.WrongTypeError),
        (("model", "shapes", "x"), [1, -1], errors.OutOfRangeError),
        (("model", "dims", "n"), True, errors.WrongTypeError),
        (("model", "dims", "n"), 1 << 63, errors.OutOfRangeError),
        (("strategy", "name"), None, errors.WrongTypeError),
        (("strategy", "parameters"), [], errors.WrongTypeError),
        (("strategy", "extra"), 1, errors.UnknownFieldError),
        (("records", 0, "alignment"), 24, errors.OutOfRangeError),
        (("records", 0, "alignment"), "16", errors.WrongTypeError),
        (("records", 0, "overlaps"), ["b"], errors.WrongTypeError),
        (("records", 0, "overlaps"), {"b": 0}, (errors.OutOfRangeError, "b is 0")),
        (("records", 0, "overlaps"), {"b": 1.5}, (errors.WrongTypeError, "b is float")),
        (
            ("records", 0, "overlaps"),
            {"absent": 1},
            (errors.InconsistentError, "overlap 'absent'"),
        ),
        (("records", 0, "overlaps"), {"a": 1}, (errors.InconsistentError, "overlap 'a'")),
        (("order",), ["p"], (errors.OutOfRangeError, "ends at step 2, there are 1")),
        (("records", 0, "offset"), -16, NegativeOffsetError),
        (("records", 0, "offset"), 8, MisalignedError),
        (("records", 0, "offset"), 16, OverlapError),
        (("memories", 0, "height"), 64, WrongHeightError),
        (("memories", 0, "lower_bound"), 49, WrongBoundError),
        (("memories", 0, "capacity"), 47, OverCapacityError),
    ],
)
def test_each_damage_has_its_error(tmp_path, place, value, error):
    damaged = copy.deepcopy(SOUND)
    parent = damaged
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    with pytest.raises(AreniteError) as caught:
        read(tmp_path, damaged)
    error, words = error if isinstance(error, tuple) else (error, place[-1])
    assert type(caught.value) is error
    if isinstance(caught.value, PlanFileError):  # a rule of plans says it by its class alone
        assert words in caught.value.reason


def fields(value, place=()):
    """Yield the place of every required field, at every depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if place not in [("model", "dims"), ("model", "shapes")]:
                yield (*place, key)
            yield from fields(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from fields(inner, (*place, index))


@pytest.mark.parametrize("place", list(fields(SOUND)), ids=str)
def test_each_missing_field_is_named(tmp_path, place):
    damaged = copy.deepcopy(SOUND)
    parent = damaged
    for key in place[:-1]:
        parent = parent[key]
    del parent[place[-1]]
    wanted = {"format": errors.NotAPlanFileError, "version": errors.UnknownVersionError}
    with pytest.raises(wanted.get(place[-1], errors.MissingFieldError)) as caught:
        read(tmp_path, damaged)
    assert place[-1] in caught.value.reason


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", errors.NotAPlanFileError),
        (b"\xff\xfe", errors.NotAPlanFileError),
        (b"[]", errors.NotAPlanFileError),
        (b"null", errors.NotAPlanFileError),
        (json.dumps(SOUND).encode()[:-20], errors.NotAPlanFileError),
        (json.dumps(SOUND).encode("utf-16"), errors.NotAPlanFileError),
        (json.dumps(SOUND).encode("utf-8-sig"), errors.NotAPlanFileError),
        (
            json.dumps(SOUND).encode().replace(b"generic", b"\xed\xa0\x80"),
            errors.NotAPlanFileError,
        ),
        (
            json.dumps(SOUND).encode().replace(b'"parameters": {', b'"parameters": {"p": 1e999'),
            errors.NotAPlanFileError,
        ),
        (b"[" * 200_000, errors.NotAPlanFileError),
        (b'{"format": NaN}', errors.NotAPlanFileError),
        (b'{"format": ' + b"9" * 5_000 + b"}", errors.NotAPlanFileError),
        (b'{"format": 1, "format": 2}', errors.NotAPlanFileError),
    ],
)
def test_what_is_no_plan_file_is_refused(tmp_path, data, error):
    with pytest.raises(error):
        read(tmp_path, data)


def test_what_is_no_regular_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "absent.json", Path(os.devnull)):
        with pytest.raises(errors.UnreadablePlanFileError):
            planfile.read(path)


def test_a_file_larger_than_any_plan_is_refused_unread(tmp_path):
    path = tmp_path / "plan.json"
    with path.open("wb") as stream:
        stream.truncate((64 << 20) + 1)
    with pytest.raises(errors.UnreadablePlanFileError, match="64 MiB"):
        planfile.read(path)


@pytest.mark.parametrize("seed", range(300))
def test_random_damage_is_read_or_refused_but_never_crashes(tmp_path, seed):
    generator = random.Random(seed)
    data = bytearray(json.dumps(SOUND).encode())
    for _ in range(generator.randrange(1, 4)):
        position = generator.randrange(len(data))
        data[position : position + generator.randrange(3)] = generator.choice(
            [b"", b"0", b"-", b'"', b"{", b"]", b"1e9", b"\x00", b"9" * 30, b"null", b"true"]
        )
    with contextlib.suppress(AreniteError):
        plan_file = read(tmp_path, bytes(data))
        assert isinstance(plan_file, PlanFile)
        assert read(tmp_path, plan_file.to_bytes()) == plan_file
