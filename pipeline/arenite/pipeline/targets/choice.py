"""What a target is, the targets, and which of them a model is read for."""

from collections.abc import Callable, Set
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.arenite import compiled_by, compiled_for
from arenite.pipeline.targets.c import compile_for_c, in_order, lower_model_for_c
from arenite.planner import AliasKind, PlanFile, Problem, Source, model_format, read
from arenite.planner.errors import (
    MissingDataError,
    ModelError,
    ModelFormatError,
    UnsupportedModelError,
)
from arenite.planner.files import model_digest
from arenite.planner.programs import SAFE_KINDS

_MODELS = frozenset({"onnx", "tflite"})
_NAMES = {"onnx": "ONNX", "tflite": "TFLite"}


@dataclass(frozen=True, slots=True)
class Target:
    """The graph as written, or a runtime whose own records are planned.

    Attributes:
        name: As on the command line.
        summary: What it stands for, in a few words.
        formats: Formats of its files, as `model_format` names them.
        open_fields: Fields of a `Reading` that the user may still decide.
        read: Returns the records to place for a model, within a capacity.
        reread: Returns the records of a model as they were when a plan was made; its `Reading`
            has dimensions, shapes and values alone.
        shares: What shares storage unless the user decides it; () where a plan file states none.
    """

    name: str
    summary: str
    formats: frozenset[str]
    open_fields: frozenset[str]
    read: Callable[[Reading, Path, int | None], Source]
    reread: Callable[[Reading, Path, PlanFile], Source]
    shares: tuple[AliasKind, ...] = ()

    def why_unsupported(self, path: Path) -> str | None:
        """Return why it takes no file of this format, or None if it takes it."""
        if model_format(path) in self.formats:
            return None
        if self.formats == _MODELS:
            return "a CSV has no operators; give the model"
        (only,) = self.formats
        return f"{self.summary} runs {_NAMES[only]} models only"


def _read_as_written(reading: Reading, path: Path, capacity: int | None) -> Source:
    """Return the records, in the best order unless the user decides it or none is free."""

    def ordered(name: str) -> Source:
        return read(
            path,
            dims=reading.dims,
            shapes=reading.shapes,
            values=reading.values,
            boundary=reading.boundary,
            alignment=reading.alignment,
            capacity=capacity,
            order=order_finder(name, reading.limits),
            aliases=SAFE_KINDS if reading.aliases is None else reading.aliases,
        )

    try:
        return ordered(reading.order_name or "best")
    except UnsupportedModelError:  # operators of subgraphs cannot be moved
        if reading.order_name is not None:
            raise
        return ordered("given")


def _reread_as_written(reading: Reading, path: Path, plan_file: PlanFile) -> Source:
    problem = plan_file.problem
    # Where records differ in alignment, as those of a CSV may, the file states them.
    uniform = all(record.alignment == plan_file.alignment for record in problem.records)
    return read(
        path,
        dims=reading.dims,
        shapes=reading.shapes,
        values=reading.values,
        boundary=plan_file.boundary,
        alignment=plan_file.alignment if uniform else None,
        order=problem.steps,
        aliases=plan_file.aliases,
        outlines=problem.has_outlines,
    )


def _reread_for_c(reading: Reading, path: Path, plan_file: PlanFile) -> Source:
    stated = replace(reading, alignment=plan_file.alignment, boundary=plan_file.boundary)
    return compile_for_c(path, stated, order=plan_file.problem.steps).source


def _runtime(
    name: str,
    summary: str,
    model_format: str,
    open_fields: Set[str],
    problem: Callable[[Reading, Path], Problem],
) -> Target:
    """Return a target whose runtime decides order, alignment and sharing."""

    def records(reading: Reading, path: Path, capacity: int | None) -> Source:
        found = problem(reading, path).with_capacity(capacity)
        return Source(path.name, model_digest(path), None, found)

    return Target(
        name, summary, frozenset({model_format}), frozenset(open_fields), records,
        lambda reading, path, _plan_file: records(reading, path, None),
    )  # fmt: skip


def _tflm(_reading: Reading, path: Path) -> Problem:
    from arenite.runtime.targets import tflm_problem

    return tflm_problem(path)


def _litert(_reading: Reading, path: Path) -> Problem:
    from arenite.runtime.targets import litert_problem

    return litert_problem(path)


def _onnxruntime(reading: Reading, path: Path) -> Problem:
    from arenite.runtime.targets import onnxruntime_problem

    return onnxruntime_problem(
        path, dims=reading.fixed_dims, shapes=reading.fixed_shapes, values=reading.values
    )


_SIZES = frozenset({"dims", "shapes", "values"})

GENERIC: Final = Target(
    "generic",
    "the graph as written",
    _MODELS | {"csv"},
    _SIZES | {"boundary", "alignment", "aliases", "order_name"},
    _read_as_written,
    _reread_as_written,
    SAFE_KINDS,
)
ARENITE: Final = Target(
    "arenite",
    "our own runtime",
    _MODELS,
    _SIZES | {"order_name", "weight_budget", "activations", "cache"},
    lambda reading, path, capacity: compiled_for(reading, path, capacity).source,
    lambda reading, path, plan_file: compiled_by(reading, path, plan_file).source,
)
C_SOURCE: Final = Target(
    "c",
    "C source",
    _MODELS,
    _SIZES | {"boundary", "alignment", "order_name"},
    lambda reading, path, capacity: (
        in_order(reading, lower_model_for_c(path, reading, capacity)).source
    ),
    _reread_for_c,
)

TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for target in (
        GENERIC,
        ARENITE,
        _runtime("tflm", "TensorFlow Lite Micro", "tflite", set(), _tflm),
        _runtime("litert", "LiteRT", "tflite", set(), _litert),
        _runtime("onnxruntime", "ONNX Runtime", "onnx", _SIZES, _onnxruntime),
        C_SOURCE,
    )
}
"""By name, in the order of the help."""


_WORDS = {
    "dims": "dimensions", "values": "values of inputs", "boundary": "boundary",
    "alignment": "alignment", "aliases": "sharing", "order_name": "order",
    "weight_budget": "weight budget", "activations": "activations", "cache": "cache",
}  # fmt: skip
"""Fields of a `Reading`, as messages call them."""
_OF_OURS = {
    "weight_budget": "--weights", "activations": "--activations", "cache": "--cache",
}  # fmt: skip
"""Options for our runtime alone, by their fields."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model, read for the target that was named or chosen.

    Attributes:
        reading: How the model was read; its target is known.
        aliases: What shares storage, where the target leaves that open.
        source: The program and its records.
        fallback: Why it is the graph as written, where nobody asked for that.
    """

    target: Target
    reading: Reading
    aliases: tuple[AliasKind, ...]
    source: Source
    fallback: str | None = None

    @property
    def order_name(self) -> str:
        """What ordered the operators."""
        return "given" if self.source.order is None else self.reading.order_name or "best"

    @property
    def phrase(self) -> str:
        """For whom the model was read and in which order, in a few words."""
        whose = "as written" if self.target is GENERIC else f"for {self.target.name}"
        if self.source.program is None:  # records alone: nothing was ordered
            return whose
        order = "in the given order" if self.order_name == "given" else f"order {self.order_name}"
        return f"{whose}, {order}"

    @property
    def note(self) -> str | None:
        """What the user should know of the choice, if anything."""
        if self.fallback is None:
            return None
        return f"planned as written, with --target {self.target.name}: {self.fallback}"


def choose_target(reading: Reading, path: Path, capacity: int | None = None) -> Chosen:
    """Read a model for the target that is named, or else for our runtime if it runs it.

    Raises:
        ModelError: It cannot be planned as it is written either.
        OptionsError: The user asks for something that the target decides itself.
    """
    if reading.target is not None:
        return _read(TARGETS[reading.target], reading, path, capacity)
    if ARENITE.why_unsupported(path) is not None:  # records alone: no choice to tell of
        return _read(GENERIC, reading, path, capacity)
    if {"boundary", "alignment", "aliases"} & _asked_for(reading):
        fallback = "--boundary, --align and --alias are about the graph as it is written"
    else:
        try:
            return _read(ARENITE, reading, path, capacity)
        except MissingDataError:  # half a model: not another target but its file is wanted
            raise
        except ModelError as error:
            fallback = str(error)
    return choose_as_written(reading, path, capacity, fallback)


def choose_as_written(reading: Reading, path: Path, capacity: int | None, reason: str) -> Chosen:
    """Read a model as the graph that is written, since our runtime does not run it.

    Args:
        reason: Why our runtime does not.

    Raises:
        ModelError: It cannot be planned as it is written either.
        OptionsError: The user asks for something that the target decides itself.
    """
    return replace(_read(GENERIC, reading, path, capacity), fallback=reason)


def check_options(reading: Reading) -> None:
    """Return if the options go together, as far as that can be told without the model.

    Raises:
        OptionsError: The user asks for something that the target decides itself.
    """
    if reading.target is not None:
        _check(TARGETS[reading.target], reading)


def _read(target: Target, reading: Reading, path: Path, capacity: int | None) -> Chosen:
    _check(target, reading)
    unsupported = target.why_unsupported(path)
    if unsupported is not None:
        raise ModelFormatError(unsupported, path=path)
    source = target.read(reading, path, capacity)
    aliases = reading.aliases
    if aliases is None:
        aliases = () if source.program is None else target.shares
    return Chosen(target, replace(reading, target=target.name), aliases, source)


def _check(target: Target, reading: Reading) -> None:
    if reading.ranges and target not in (GENERIC, ARENITE, C_SOURCE):
        raise OptionsError(
            f"--target {target.name} plans one size: {reading.ranges[0]} is a range, for --target "
            f"{ARENITE.name}, {C_SOURCE.name} and {GENERIC.name}"
        )
    refused = _asked_for(reading) - target.open_fields
    for field, option in _OF_OURS.items():
        if refused == {field}:
            raise OptionsError(f"{option} is for --target {ARENITE.name}")
    if refused:
        decided = [word for field, word in _WORDS.items() if field not in target.open_fields]
        raise OptionsError(
            f"--target {target.name} decides {', '.join(decided[:-1])} and {decided[-1]} "
            "itself; leave those options out"
        )


def _asked_for(reading: Reading) -> frozenset[str]:
    """Return the fields in which a reading differs from that of no options."""
    plain = Reading(target=reading.target)
    return frozenset(
        field.name
        for field in fields(Reading)
        if field.compare and getattr(reading, field.name) != getattr(plain, field.name)
    )
