"""Read a model file of any format we know.

Each importer is imported when a file of its format is read, so that only that format's packages
need be installed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from arenite.planner.errors import BindingError, ModelFormatError, about_file, needing
from arenite.planner.files import model_digest, read_model
from arenite.planner.importers.tflite.file import IDENTIFIER
from arenite.planner.placement.problem import Problem
from arenite.planner.programs.memories import in_memories
from arenite.planner.programs.ordering import FindOrder, Order
from arenite.planner.programs.program import Program
from arenite.planner.programs.rules import DEFAULT_ALIGNMENT, AliasKind, Boundary, Rules
from arenite.planner.rewrites.derivation import Derivation, derive
from arenite.planner.sizes import Dimension, Length


@dataclass(frozen=True, slots=True)
class Source:
    """A model file as it was read.

    Attributes:
        name: File name, without folders.
        digest: SHA-256 of its bytes, hexadecimal.
        program: The program in its final order, its storage shared; None for a file that only
            lists records.
        problem: The records to place.
        order: The result of the search for an order; None if the file's own was kept.
    """

    name: str
    digest: str
    program: Program | None
    problem: Problem
    order: Order | None = None

    @classmethod
    def derived(cls, name: str, digest: str, derivation: Derivation) -> Self:
        """Return a source whose program and records are those derived from the file's."""
        return cls(name, digest, derivation.program, derivation.problem, derivation.order)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Dimensions that the sizes of its records depend on."""
        return () if self.program is None else self.program.dimensions

    def with_problem(self, problem: Problem) -> Self:
        """Return the source with its records in other memories, and its tensors with them.

        Args:
            problem: The same records, as `arenite.planner.programs.assigned` returns
                them.
        """
        program = None if self.program is None else in_memories(self.program, problem)
        return replace(self, program=program, problem=problem)


Dims = Mapping[str, Length]
"""Values or ranges of free dimensions, by name."""
Shapes = Mapping[str, tuple[int, ...]]
RangedShapes = Mapping[str, tuple[Length, ...]]
"""Shapes of inputs, by name, with ranges among the lengths.

A range named `input:axis` gets the model's name of that axis, if it has one.
"""
InputValues = Mapping[str, float]
"""One value for all elements of an input, by the input's name."""

_FORMATS = {".onnx": "onnx", ".tflite": "tflite", ".lite": "tflite", ".csv": "csv"}


def load(
    path: Path | str,
    *,
    dims: Dims | None = None,
    shapes: RangedShapes | None = None,
    values: InputValues | None = None,
    weights: bool = False,
) -> Program:
    """Return the program of a model file.

    Args:
        path: `.onnx`, `.tflite` or `.lite`.
        dims: Values or ranges of free dimensions, by name; ONNX only. A value may be an
            expression of other dimensions (`arenite.planner.sizes`).
        shapes: Shapes of inputs, by name; of a TFLite file those that its signature leaves open.
        values: Inputs fixed at a value, constants from then on; ONNX only.
        weights: Whether to make the values of constants available, for running the model.

    Raises:
        ModelFormatError: The file cannot be read, is damaged, or is not a model.
        BindingError: `dims`, `shapes` or `values` does not fit the model.
        SizeError: A length is not known for all sizes of a range.
        ModelError: The model cannot be read for another reason.
    """
    path = Path(path)
    with about_file(path):
        kind = model_format(path)
        if kind == "onnx":
            with needing("onnx", "onnx", f"reading {path.name!r}"):
                from arenite.planner.importers.onnx.reader import read_onnx

            return read_onnx(
                path, dims=dims or {}, shapes=shapes or {}, values=values or {}, weights=weights
            )
        if kind == "tflite":
            from arenite.planner.importers.tflite.reader import read_bound_tflite

            return read_bound_tflite(path, dims or {}, shapes or {}, values or {}, weights=weights)
        raise ModelFormatError("a CSV lists records only; give a model")


def read(
    path: Path | str,
    *,
    dims: Dims | None = None,
    shapes: RangedShapes | None = None,
    values: InputValues | None = None,
    boundary: Boundary = Boundary.INCLUDE,
    alignment: int | None = None,
    capacity: int | None = None,
    order: FindOrder | tuple[str, ...] | None = None,
    aliases: Collection[AliasKind] = (),
    outlines: bool = False,
) -> Source:
    """Read a model file and derive the records to place.

    Args:
        path: `.onnx`, `.tflite`, `.lite` or `.csv`.
        dims: As in `load`.
        shapes: As in `load`.
        values: As in `load`.
        boundary: Whether the model's inputs and outputs lie in the arena; ignored for a CSV.
        alignment: Alignment of every offset, in bytes; by default 16, or that of a CSV.
        capacity: Most bytes the arena may take; by default what `read_csv` takes from the
            name of a CSV.
        order: Step names in order, or a function that finds an order; by default the file's
            own order.
        aliases: Kinds of sharing; ignored for a CSV.
        outlines: Whether records state which of their bytes are needed when; ignored for a CSV.

    Raises:
        ModelError: As in `load`.
    """
    path = Path(path)
    with about_file(path):
        digest = model_digest(path)
        if model_format(path) == "csv":
            problem = _read_csv(path, (*(dims or ()), *(shapes or ()), *(values or ())), alignment)
            if capacity is not None:
                problem = problem.with_capacity(capacity)
            return Source(path.name, digest, None, problem)
        program = load(path, dims=dims, shapes=shapes, values=values)
        rules = Rules(
            tuple(aliases),
            boundary,
            DEFAULT_ALIGNMENT if alignment is None else alignment,
            capacity,
            outlines,
        )
        return Source.derived(path.name, digest, derive(program, rules, order))


def model_format(path: Path | str) -> str:
    """Return the format of a model file, by its suffix, else by its content.

    Raises:
        ModelFormatError: Neither is known, or the file cannot be read.
    """
    path = Path(path)
    known = _FORMATS.get(path.suffix.lower())
    if path.suffix.lower() == ".arena":
        raise ModelFormatError(
            "this is a program that 'arenite build' wrote; give the ONNX or TFLite model that it "
            "was built from",
            path=path,
        )
    if known is None and read_model(path)[4:8] == IDENTIFIER:
        return "tflite"
    if known is None:
        raise ModelFormatError(
            f"neither its suffix nor its content is known; known: {', '.join(_FORMATS)}", path=path
        )
    return known


def open_names(path: Path | str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of a model's free dimensions and of its inputs; a CSV has neither.

    Raises:
        ModelError: The file cannot be read.
    """
    path = Path(path)
    with about_file(path):
        kind = model_format(path)
        if kind == "onnx":
            with needing("onnx", "onnx", f"reading {path.name!r}"):
                from arenite.planner.importers.onnx import binding, file

            return binding.open_names(file.load_model(path).graph)
        if kind == "tflite":
            return frozenset(), frozenset(load(path).input_tensors)
        return frozenset(), frozenset()


def open_shapes(path: Path | str) -> dict[str, tuple[int | str, ...]]:
    """Return the shape of each input of an ONNX model, free dimensions by their names.

    Raises:
        ModelError: The file cannot be read, or is of another format.
    """
    path = Path(path)
    with about_file(path):
        if model_format(path) != "onnx":
            raise ModelFormatError("free dimensions have names in an ONNX model only")
        with needing("onnx", "onnx", f"reading {path.name!r}"):
            from arenite.planner.importers.onnx import binding, file

        return binding.open_shapes(file.load_model(path).graph)


def _read_csv(path: Path, given: Sequence[str], alignment: int | None) -> Problem:
    from arenite.planner.importers.csv import read_csv

    for name in given:
        raise BindingError(name, "is unknown: a CSV has neither dimensions nor inputs")
    problem = read_csv(path)
    if alignment is None:
        return problem
    return replace(
        problem, records=tuple(replace(record, alignment=alignment) for record in problem.records)
    )
