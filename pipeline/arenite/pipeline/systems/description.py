"""A system as its author describes it: models, how they are connected, and when they run."""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from arenite.pipeline.making.hops import axis_of
from arenite.planner import Dims, Memory, RangedShapes
from arenite.planner.errors import FileError, SizeError, about_file
from arenite.planner.programs import CostedMemory, Section, SectionKind, costed
from arenite.planner.sizes import Dimension
from arenite.planner.units import parse_size
from arenite.runtime.rewrites import Hops, Padding, WeightBudget

_KINDS = {str(kind): kind for kind in SectionKind}
_OF_MODEL = (
    "path", "keep", "dims", "shapes", "values", "weights", "axis", "hop", "padding",
)  # fmt: skip
_OF_MEMORY = ("size", "read", "write")
_OF_SYSTEM = ("models", "schedule", "connect", "memories")


class SystemFileError(FileError):
    """The description of a system is not complete, or its models do not fit together."""


@dataclass(frozen=True, slots=True)
class SystemModel:
    """A model of a system.

    Attributes:
        path: An ONNX or TFLite file.
        keep: Outputs that stay until the schedule ends.
        dims: Values or ranges of free dimensions, by name. No two models may have ranges of the
            same name: those read from a file have the name of the model before theirs.
        shapes: Shapes of inputs, by name, ranges among them.
        values: Inputs fixed at a value, by name.
        weights: Those that may be resident in a run, the others being streamed; None for all.
        hops: The stream that it runs on; None for whole windows.
    """

    path: Path
    keep: tuple[str, ...] = ()
    dims: Dims = field(default_factory=dict)
    shapes: RangedShapes = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    weights: WeightBudget | None = None
    hops: Hops | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """An output of a model that is an input of a later one.

    Attributes:
        source: Model and output: `detector.boxes`.
        target: Model and input: `landmarks.image`.
    """

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class SystemDescription:
    """Several models in one arena.

    Attributes:
        name: For display.
        models: By name, in the order of their steps.
        schedule: Which orders there are; names each model once, in the same order.
        connections: Outputs that are inputs.
        memories: Those that the tensors are spread over; none for one without limit.

    Raises:
        SystemFileError: The parts do not fit together.
    """

    name: str
    models: Mapping[str, SystemModel]
    schedule: Section
    connections: tuple[Connection, ...] = ()
    memories: tuple[CostedMemory, ...] = ()

    def __post_init__(self) -> None:
        for name in self.models:
            if not name or "." in name or "/" in name:
                raise SystemFileError(f"a model is named {name!r}; use no dot and no slash")
        scheduled = list(self.schedule.stages())
        for name in scheduled:
            if name not in self.models:
                raise SystemFileError(
                    f"the schedule names {name!r}; models: {_listed(self.models)}"
                )
            if scheduled.count(name) > 1:
                raise SystemFileError(
                    f"the schedule names {name!r} more than once; {{ repeat = [{name!r}] }} runs "
                    "it several times"
                )
        for name in self.models:
            if name not in scheduled:
                raise SystemFileError(f"the schedule leaves out {name!r}")
        for section in self.schedule.sections():
            if not section.parts:
                raise SystemFileError(f"a section {section.kind!s} of the schedule is empty")
            inner = (each for each in section.sections() if each is not section)
            if section.kind is SectionKind.AT_ONCE and any(
                each.kind is SectionKind.AT_ONCE for each in inner
            ):
                raise SystemFileError(
                    "a section at_once is inside another; name all models in one"
                )
        _check_connections(self)

    @property
    def paths(self) -> list[Path]:
        """Files of the models."""
        return [model.path for model in self.models.values()]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the system of a TOML file; paths in it are relative to its folder.

        Raises:
            SystemFileError: It cannot be read, or does not describe a system.
        """
        with about_file(path):
            try:
                stated = tomllib.loads(path.read_text(encoding="utf-8-sig"))
            except OSError as error:
                raise SystemFileError(f"cannot be read: {error.strerror}") from error
            except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
                raise SystemFileError(f"is not TOML: {error}") from error
            _check_keys("the system", stated, _OF_SYSTEM)
            models = {
                name: _model(path.parent, name, each)
                for name, each in _table("models", stated.get("models", {})).items()
            }
            if not models:
                raise SystemFileError("describes no model; add [models.NAME] with a path")
            schedule = _section("sequence", stated.get("schedule", list(models)), 0)
            order = [name for name in schedule.stages() if name in models]
            ordered = {name: models[name] for name in dict.fromkeys((*order, *models))}
            connections = tuple(_connections(stated.get("connect", [])))
            memories = costed(_memories(stated.get("memories", {})))
            return cls(path.name, ordered, schedule, connections, memories)


def _check_connections(system: SystemDescription) -> None:
    targets: set[str] = set()
    for each in system.connections:
        source, target = (_of_port(system, port) for port in (each.source, each.target))
        if each.target in targets:
            raise SystemFileError(f"two outputs are connected to {each.target!r}")
        targets.add(each.target)
        reason = _why_not_before(system.schedule, source, target)
        if reason is not None:
            raise SystemFileError(f"{each.source!r} cannot feed {each.target!r}: {reason}")


def _of_port(system: SystemDescription, port: str) -> str:
    model, dot, name = port.partition(".")
    if not dot or not name or model not in system.models:
        raise SystemFileError(
            f"connects {port!r}; expected MODEL.PORT of the models {_listed(system.models)}"
        )
    return model


def _why_not_before(schedule: Section, source: str, target: str) -> str | None:
    """Return why a model may not have run just before another reads it, None if it has."""
    if source == target:
        return "it is the same model"
    for section in schedule.sections():
        among = list(section.stages())
        may_be_left_out = section.kind in (SectionKind.MAYBE, SectionKind.REPEAT)
        if may_be_left_out and source in among and target not in among:
            return (
                f"{target!r} may run without {source!r}; put both into one section "
                f"{section.kind!s}"
            )
        if source in among and target in among:
            parts = [part for part in section.parts if {source, target} & set(_stages(part))]
            if len(parts) > 1 and section.kind in (SectionKind.ANY_ORDER, SectionKind.AT_ONCE):
                return f"both are in a section {section.kind!s}, which gives them no order"
    order = list(schedule.stages())
    return None if order.index(source) < order.index(target) else "it runs later"


def _stages(part: str | Section) -> Iterator[str]:
    return iter((part,)) if isinstance(part, str) else part.stages()


def _model(folder: Path, name: str, stated: Any) -> SystemModel:
    what = f"model {name!r}"
    stated = _table(what, stated)
    _check_keys(what, stated, _OF_MODEL)
    path = stated.get("path")
    if not isinstance(path, str) or not path:
        raise SystemFileError(f"{what} has no path")
    if "\0" in path:
        raise SystemFileError(f"{what} has path {path!r}; no file has a name with a zero byte")
    dims, shapes = _lengths(name, stated)
    values = _table(f"values of {what}", stated.get("values", {}))
    for value in values.values():
        if type(value) not in (int, float):
            raise SystemFileError(f"{what} has a value {value!r}; expected a number")
    keep = _list(stated.get("keep", []))
    if not all(isinstance(each, str) for each in keep):
        raise SystemFileError(f"{what} keeps {keep!r}; expected names of outputs")
    return SystemModel(
        folder / path, tuple(keep), dims, shapes, values, _weights(what, stated.get("weights")),
        _hops(what, stated),
    )  # fmt: skip


def _lengths(model: str, stated: Mapping[str, Any]) -> tuple[Dims, RangedShapes]:
    """Return the dimensions and shapes of a model; its ranges have names of their own."""
    what = f"model {model!r}"
    dims, shapes = (_table(f"{key} of {what}", stated.get(key, {})) for key in ("dims", "shapes"))

    def length(name: str, value: Any) -> int | Dimension:
        if isinstance(value, str):
            try:
                value = Dimension.parse(name, value)
            except SizeError as error:
                raise SystemFileError(f"{what} has a size {error}") from error
        if isinstance(value, Dimension):
            if value.grows:
                raise SystemFileError(f"{what} has a size {value}, which grows: unsupported")
            return replace(value, name=f"{model}.{value.name}")
        if type(value) is not int or value < 1:
            raise SystemFileError(
                f"{what} has a size {value!r}; expected a whole number from 1 on, or a range "
                "such as '1..128'"
            )
        return value

    return (
        {name: length(name, value) for name, value in dims.items()},
        {
            name: tuple(length(f"{name}:{axis}", each) for axis, each in enumerate(_list(shape)))
            for name, shape in shapes.items()
        },
    )


def _weights(what: str, stated: Any) -> WeightBudget | None:
    if stated is None:
        return None
    try:
        return WeightBudget.parse(stated if isinstance(stated, str) else str(stated))
    except ValueError as error:
        raise SystemFileError(
            f"{what} has weights {stated!r}: {error}; expected a size or a share, such as '25%'"
        ) from error


def _hops(what: str, stated: Mapping[str, Any]) -> Hops | None:
    """Return the stream that a model runs on."""
    axis, hop, padding = (stated.get(key) for key in ("axis", "hop", "padding"))
    if axis is None and hop is None and padding is None:
        return None
    if axis is None or hop is None:
        raise SystemFileError(f"{what}: axis and hop state a stream together")
    if type(hop) is not int or not isinstance(axis, str):
        raise SystemFileError(
            f"{what} has axis {axis!r} and hop {hop!r}; expected text such as 'frames:1' and a "
            "number of rows"
        )
    known = {str(each): each for each in Padding}
    if padding is not None and padding not in known:
        raise SystemFileError(f"{what} has padding {padding!r}; known: {_listed(known)}")
    try:
        return Hops(*axis_of(axis), hop, Padding(padding or Padding.WINDOW))
    except ValueError as error:
        raise SystemFileError(f"{what}: {error}") from error


_DEEPEST = 16
"""Levels of a schedule."""


def _section(kind: str, stated: Any, depth: int) -> Section:
    if kind not in _KINDS:
        raise SystemFileError(f"the schedule has a section {kind!r}; known: {_listed(_KINDS)}")
    if depth > _DEEPEST:
        raise SystemFileError(f"the schedule has more than {_DEEPEST} levels")
    if not isinstance(stated, list):
        raise SystemFileError(f"{kind} is {stated!r} in the schedule; expected a list of models")
    parts: list[str | Section] = []
    for part in stated:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict) and len(part) == 1:
            ((inner, its),) = part.items()
            parts.append(_section(inner, its, depth + 1))
        else:
            raise SystemFileError(
                f"the schedule has a part {part!r}; expected a model, or a section such as "
                "{ maybe = [...] }"
            )
    return Section(_KINDS[kind], tuple(parts))


def _connections(stated: Any) -> Iterator[Connection]:
    for each in _list(stated):
        found = _table("a connection", each)
        _check_keys("a connection", found, ("from", "to"))
        ends = [found.get("from"), found.get("to")]
        if not all(isinstance(end, str) for end in ends):
            raise SystemFileError(
                f"a connection is {found!r}; expected from and to, MODEL.PORT each"
            )
        yield Connection(str(ends[0]), str(ends[1]))


def _memories(stated: Any) -> Iterator[tuple[Memory, float | None, float | None]]:
    for name, each in _table("memories", stated).items():
        what = f"memory {name!r}"
        found = _table(what, each)
        _check_keys(what, found, _OF_MEMORY)
        if not name or "=" in name:
            raise SystemFileError(f"a memory is named {name!r}; use some text without '='")
        if "size" not in found:
            raise SystemFileError(f"{what} has no size")
        capacity = None if found["size"] == "any" else _size(what, found["size"])
        read, write = (_cost(what, key, found.get(key)) for key in ("read", "write"))
        yield Memory(name, capacity), read, write


def _size(what: str, stated: Any) -> int:
    size = stated
    if isinstance(stated, str):
        try:
            size = parse_size(stated)
        except ValueError as error:
            raise SystemFileError(f"size of {what}: {error}, or 'any'") from error
    if type(size) is not int or not 1 <= size < 2**63:
        raise SystemFileError(
            f"{what} has size {stated!r}; expected bytes from 1 to 2^63 - 1, such as 262144 or "
            "'256KiB', or 'any'"
        )
    return size


def _cost(what: str, key: str, stated: Any) -> float | None:
    if stated is None:
        return None
    if type(stated) not in (int, float) or not 0 <= stated < math.inf:
        raise SystemFileError(f"{what} has {key} {stated!r}; expected a number from 0 on")
    return float(stated)


def _table(what: str, stated: Any) -> dict[str, Any]:
    if not isinstance(stated, dict):
        raise SystemFileError(f"{what} is {stated!r}; expected a table")
    return stated


def _list(stated: Any) -> Sequence[Any]:
    if not isinstance(stated, list):
        raise SystemFileError(f"there is {stated!r} where a list is expected")
    return stated


def _check_keys(what: str, stated: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in stated:
        if key not in known:
            advice = "; keys of the system stand above its tables" if key in _OF_SYSTEM else ""
            raise SystemFileError(
                f"{what} has an unknown key {key!r}; known: {', '.join(known)}{advice}"
            )


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(map(repr, names))
