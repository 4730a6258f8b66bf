"""Read a plan file as if it came from an enemy: every field is checked before use."""

import json
import math
import re
import reprlib
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from arenite.planner.errors import ModelError, about_file
from arenite.planner.liveness import Boundary
from arenite.planner.plan import ParameterValue, Plan
from arenite.planner.planfile.contents import FORMAT, VERSION, ModelReference, PlanFile
from arenite.planner.planfile.errors import (
    DuplicateNameError,
    InconsistentError,
    MissingFieldError,
    NotAPlanFileError,
    OutOfRangeError,
    UnknownFieldError,
    UnknownVersionError,
    UnreadablePlanFileError,
    WrongTypeError,
)
from arenite.planner.problem import PermittedOverlap, Problem, UsageRecord
from arenite.planner.rewrites.aliasing import AliasKind
from arenite.planner.verify import verify

_MAX_FILE_SIZE = 64 << 20
_MAX_NUMBER = (1 << 63) - 1

_Object: TypeAlias = dict[str, object]

_FIELDS = (
    "format", "version", "model", "target", "boundary", "alignment", "aliases", "capacity",
    "height", "lower_bound", "bound", "optimal", "strategy", "order", "records",
)  # fmt: skip
_RECORD_FIELDS = ("name", "offset", "size", "start", "end", "tensors")


def read(path: Path) -> PlanFile:
    """Return the contents of a plan file after checking all of it.

    Raises:
        PlanFileError: By the subclass of what is wrong with the file.
        InvalidPlanError: The file is sound but its plan is not.
    """
    with about_file(path):
        return _read(path)


def _read(path: Path) -> PlanFile:
    reader = _Reader()
    document = reader.document(path)
    plan_file = PlanFile(
        model=reader.model(document),
        target=reader.text(document, "target"),
        boundary=Boundary(reader.choice(document, "boundary", tuple(Boundary))),
        alignment=reader.alignment(document, "alignment"),
        aliases=reader.aliases(document),
        problem=reader.problem(document),
        plan=reader.plan(document),
    )
    verify(plan_file.problem, plan_file.plan)
    reader.check_bound(document, plan_file)
    return plan_file


_BUDGET = re.compile(r"[1-9][0-9]{0,18}|(0|[1-9][0-9]?|100)(\.[0-9]{1,9})?%")
"""Bytes, or per cent."""


class _Reader:
    """Typed access to the fields of one untrusted document."""

    def document(self, path: Path) -> _Object:
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise UnreadablePlanFileError("not a regular file; give the plan file")
            if status.st_size > _MAX_FILE_SIZE:
                raise UnreadablePlanFileError("larger than 64 MiB")
            data = path.read_bytes()
        except OSError as error:
            raise UnreadablePlanFileError(error.strerror or str(error)) from error
        try:
            value = json.loads(
                data.decode(),
                object_pairs_hook=self._without_duplicates,
                parse_float=self._finite,
                parse_constant=self._no_constant,
            )
        except (ValueError, RecursionError) as error:
            raise NotAPlanFileError(f"not JSON: {error}") from error
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise NotAPlanFileError(f"not a plan file: no format {FORMAT!r}")
        document: _Object = value
        version = document.get("version")
        if type(version) is not int or version != VERSION:  # true == 1.0 == 1
            raise UnknownVersionError(
                f"version {reprlib.repr(version)}; this Arenite reads version {VERSION}",
            )
        self.fields(document, "the file", _FIELDS)
        return document

    def _without_duplicates(self, pairs: list[tuple[str, object]]) -> _Object:
        value: _Object = {}
        for name, item in pairs:
            if name in value:
                raise DuplicateNameError(f"the key {name!r} stands twice in one object")
            value[self._text(name, "a key")] = item
        return value

    def _finite(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            raise OutOfRangeError(f"{reprlib.repr(text)} is no finite number")
        return value

    def _no_constant(self, text: str) -> object:
        raise ValueError(f"{text} is not a number")

    def fields(
        self, value: _Object, where: str, required: Sequence[str], optional: Sequence[str] = ()
    ) -> None:
        for name in required:
            if name not in value:
                raise MissingFieldError(f"{where} has no {name!r}")
        for name in value:
            if name not in required and name not in optional:
                raise UnknownFieldError(f"{where} has an unknown field {name!r}")

    def wrong_type(self, name: str, value: object, expected: str) -> WrongTypeError:
        return WrongTypeError(f"{name} is {type(value).__name__}, {expected} expected")

    def text(self, parent: _Object, name: str) -> str:
        return self._text(parent[name], name)

    def texts(self, parent: _Object, name: str) -> tuple[str, ...]:
        return tuple(self._text(item, f"an item of {name}") for item in self.items(parent, name))

    def _text(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise self.wrong_type(name, value, "text")
        try:
            value.encode()
        except UnicodeEncodeError as error:  # the escape of half a surrogate pair
            raise WrongTypeError(f"{name} is {value!r}, which is no text") from error
        return value

    def choice(self, parent: _Object, name: str, choices: Sequence[str]) -> str:
        value = self.text(parent, name)
        if value not in choices:
            raise WrongTypeError(f"{name} is {value!r}, one of {', '.join(choices)} expected")
        return value

    def number(self, parent: _Object, name: str, least: int = 0) -> int:
        return self._number(parent[name], name, least)

    def _number(self, value: object, name: str, least: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong_type(name, value, "a whole number")
        if not least <= value <= _MAX_NUMBER:
            raise OutOfRangeError(f"{name} is {value}, {least} to 2^63 - 1 expected")
        return value

    def alignment(self, parent: _Object, name: str) -> int:
        value = self.number(parent, name, 1)
        if value & (value - 1):
            raise OutOfRangeError(f"{name} is {value}, a power of two expected")
        return value

    def aliases(self, document: _Object) -> tuple[AliasKind, ...]:
        kinds = self.texts(document, "aliases")
        for kind in kinds:
            if kind not in tuple(AliasKind) or kinds.count(kind) > 1:
                raise WrongTypeError(
                    f"aliases has {kind!r}, each of {', '.join(AliasKind)} once expected",
                )
        return tuple(map(AliasKind, kinds))

    def flag(self, parent: _Object, name: str) -> bool:
        value = parent[name]
        if not isinstance(value, bool):
            raise self.wrong_type(name, value, "true or false")
        return value

    def items(self, parent: _Object, name: str) -> list[object]:
        value = parent[name]
        if not isinstance(value, list):
            raise self.wrong_type(name, value, "a list")
        return value

    def member(self, parent: _Object, name: str) -> _Object:
        return self.as_object(parent[name], name)

    def as_object(self, value: object, name: str) -> _Object:
        if not isinstance(value, dict):
            raise self.wrong_type(name, value, "an object")
        return value

    def model(self, document: _Object) -> ModelReference:
        model = self.member(document, "model")
        self.fields(model, "model", ("name", "sha256", "dims", "shapes"), ("weight_budget",))
        budget = self.text(model, "weight_budget") if "weight_budget" in model else ""
        if "weight_budget" in model and not _BUDGET.fullmatch(budget):
            raise WrongTypeError(f"weight_budget is {budget!r}, bytes or per cent expected")
        dims = self.member(model, "dims")
        shapes = self.member(model, "shapes")
        digest = self.text(model, "sha256")
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise WrongTypeError("sha256 is not 64 lower-case hexadecimal digits")
        return ModelReference(
            self.text(model, "name"),
            digest,
            {name: self.number(dims, name, 1) for name in dims},
            {
                name: tuple(self._number(d, name, 0) for d in self.items(shapes, name))
                for name in shapes
            },
            budget,
        )

    def problem(self, document: _Object) -> Problem:
        alignment = self.alignment(document, "alignment")
        order = self.texts(document, "order")
        if len(set(order)) != len(order):
            raise DuplicateNameError("order names an operator twice")
        capacity = None if document["capacity"] is None else self.number(document, "capacity")
        records = []
        names: set[str] = set()
        placed: set[str] = set()
        for index, item in enumerate(self.items(document, "records")):
            record = self.record(item, index, alignment)
            if record.name in names:
                raise DuplicateNameError(f"two records are named {record.name!r}")
            names.add(record.name)
            for tensor in record.tensors:
                if tensor in placed:
                    raise DuplicateNameError(f"tensor {tensor!r} is placed twice")
                placed.add(tensor)
            if order and record.end > len(order):
                raise OutOfRangeError(
                    f"record {record.name!r} ends at step {record.end}, there are {len(order)}",
                )
            records.append(record)
        try:
            return Problem(tuple(records), order, capacity)
        except ModelError as error:
            raise InconsistentError(str(error)) from error

    def record(self, value: object, index: int, alignment: int) -> UsageRecord:
        entry = self.as_object(value, f"record {index}")
        self.fields(entry, f"record {index}", _RECORD_FIELDS, ("alignment", "overlaps"))
        start = self.number(entry, "start")
        overlaps = self.member(entry, "overlaps") if "overlaps" in entry else {}
        return UsageRecord(
            name=self.text(entry, "name"),
            size=self.number(entry, "size", 1),
            start=start,
            end=self.number(entry, "end", start + 1),
            alignment=self.alignment(entry, "alignment") if "alignment" in entry else alignment,
            tensors=self.texts(entry, "tensors"),
            overlaps=tuple(PermittedOverlap(n, self.number(overlaps, n, 1)) for n in overlaps),
        )

    def plan(self, document: _Object) -> Plan:
        strategy = self.member(document, "strategy")
        self.fields(strategy, "strategy", ("name", "parameters"))
        parameters: dict[str, ParameterValue] = {}
        for name, value in self.member(strategy, "parameters").items():
            if not isinstance(value, bool | int | float | str):
                raise self.wrong_type(name, value, "a number, text or true or false")
            parameters[name] = self._text(value, name) if isinstance(value, str) else value
        offsets = tuple(
            self.number(self.as_object(item, "record"), "offset", -_MAX_NUMBER)
            for item in self.items(document, "records")
        )
        return Plan(
            offsets,
            self.number(document, "height"),
            self.text(strategy, "name"),
            self.number(document, "lower_bound"),
            parameters,
        )

    def check_bound(self, document: _Object, plan_file: PlanFile) -> None:
        stated = plan_file.plan.lower_bound
        load = plan_file.problem.lower_bound
        bound = self.choice(document, "bound", ("load", "search"))
        if stated < load or (bound == "load") != (stated == load):
            raise InconsistentError(
                f"lower_bound is {stated} from {bound}, the records' largest load is {load}",
            )
        if self.flag(document, "optimal") != plan_file.plan.optimal:
            raise InconsistentError(
                f"optimal contradicts height {plan_file.plan.height} and lower_bound {stated}",
            )
