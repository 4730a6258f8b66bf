"""Read a TFLite file, with or without its weights, at the shapes that are asked for."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from arenite.planner.errors import (
    BindingError,
    ModelError,
    SizeError,
    UnsupportedModelError,
    about_file,
)
from arenite.planner.files import read_model
from arenite.planner.importers.tflite.file import decode
from arenite.planner.importers.tflite.importer import model_of
from arenite.planner.importers.tflite.operators import Loop
from arenite.planner.importers.tflite.resizing import computes_shapes, resized
from arenite.planner.importers.tflite.tensors import OPEN_INPUTS
from arenite.planner.importers.tflite.variables import Variables
from arenite.planner.programs.program import Program
from arenite.planner.sizes import Dimension, Length, Ranges, Sizes, at, depends, same_lengths


def read_tflite(path: Path, *, weights: bool = False) -> Program:
    """Return the program of a TFLite model; its variables are states where they can be.

    Args:
        weights: Whether to read constants, quantisation and options. Needed to run the
            model, not to size it. An IF is then a choice, and a WHILE one step; other control flow
            is refused.

    Raises:
        ModelFormatError: The file is damaged or is not a TFLite file.
        UnsupportedModelError: A tensor has no fixed size, or subgraphs are recursive or
            unfold to too many operands.
        MissingDependencyError: The schema package is absent.
    """
    if not weights:
        with about_file(path):
            subgraphs = decode(read_model(path))
            return model_of(path.name, subgraphs, Variables.of(subgraphs)).program
    from arenite.planner.importers.tflite.contents import TfliteContents

    with about_file(path):
        return TfliteContents(path.name, read_model(path)).program


def read_bound_tflite(
    path: Path,
    dims: Mapping[str, Length],
    shapes: Mapping[str, tuple[Length, ...]],
    values: Mapping[str, float],
    *,
    weights: bool = False,
) -> Program:
    """Return the program of a TFLite model with inputs of these shapes.

    Args:
        dims: Values of free dimensions by name; a TFLite file has none with a name.
        shapes: Of inputs by name. A range without a name of its own goes by input and axis, such
            as `input:0`.
        values: Of inputs by name; only those of ONNX models can be fixed.
        weights: Whether to read constants, quantisation and options.

    Raises:
        BindingError: An operator does not take a requested shape.
        SizeError: A length is not known for all sizes of a range.
        ModelError: As in `read_tflite`.
    """
    program = read_tflite(path, weights=weights)
    for name in dims:
        raise BindingError(
            name, "is unknown: dimensions of TFLite models have no names, use --shape"
        )
    for name in values:
        raise BindingError(name, "cannot be fixed: --value is for ONNX models")
    ranges: dict[str, Dimension] = {}
    wanted = {}
    for name, given in shapes.items():
        if name not in program.input_tensors:
            known = ", ".join(map(repr, program.input_tensors))
            raise BindingError(name, f"is not an input of the model; known: {known}")
        shape = tuple(_size(name, axis, length, ranges) for axis, length in enumerate(given))
        if not same_lengths(program.tensors[name].shape, shape):
            wanted[name] = shape
    signatures = _signatures(path) if wanted else {}
    if wanted or computes_shapes(program):
        program = _inferred(path, program, wanted, tuple(ranges.values()), weights=weights)
    open_inputs = {name for name, signature in signatures.items() if signature}
    notes = (note for note in program.notes if not note.startswith(OPEN_INPUTS))
    return replace(program, notes=tuple(notes)) if open_inputs <= shapes.keys() else program


def _size(name: str, axis: int, given: Length, ranges: dict[str, Dimension]) -> int:
    """Return a length of an input, and note the range that it has."""
    if not isinstance(given, Dimension):
        if given < 1:
            raise BindingError(name, f"cannot have the length {given}: a length is at least 1")
        return given
    dimension = given if given.name else replace(given, name=f"{name}:{axis}")
    if dimension.low < 1:
        raise BindingError(name, f"cannot have the range {dimension}: a length is at least 1")
    if depends(dimension.size) and ranges.setdefault(dimension.name, dimension) != dimension:
        raise BindingError(name, f"cannot have both {ranges[dimension.name]} and {dimension}")
    return dimension.size


def _inferred(
    path: Path,
    program: Program,
    shapes: Mapping[str, tuple[int, ...]],
    ranges: tuple[Dimension, ...],
    *,
    weights: bool,
) -> Program:
    """Return the program with sizes inferred, or with a note that they are those of the file."""
    try:
        stored = read_tflite(path, weights=True)
        loop = next((each for each in stored.steps if isinstance(each.operator, Loop)), None)
        if loop is not None and not weights:  # of which only a run has one step
            raise UnsupportedModelError(
                loop.name, "sizes beside a loop are inferred for runs alone"
            )
        found = replace(resized(stored, shapes), dimensions=ranges)
        for sizes in Ranges(ranges).points if ranges else ():
            _check(found, stored, shapes, sizes)
    except ModelError as reason:
        if shapes:
            raise
        note = f"sizes that the model computes are taken from the file: {reason}"
        return replace(program, notes=(*program.notes, note))
    return found


def _check(
    found: Program, stored: Program, shapes: Mapping[str, tuple[int, ...]], sizes: Sizes
) -> None:
    """Compare lengths that are expressions with those inferred for one size of each dimension.

    Raises:
        SizeError: They differ.
    """
    where = ", ".join(f"{name}={value}" for name, value in sizes.items())
    fixed = {name: tuple(at(each, sizes) for each in shape) for name, shape in shapes.items()}
    varying = {name for name, each in found.tensors.items() if any(map(depends, each.shape))}
    try:
        expected = resized(stored, fixed, varying)
    except BindingError as error:
        raise SizeError(f"at {where}: {error.reason}") from error
    writers = {name: step for step in stored.steps for name in step.outputs}
    for name, tensor in found.tensors.items():
        shape = tuple(at(each, sizes) for each in tensor.shape)
        if shape != expected.tensors[name].shape:
            operator = writers[name].operator.label if name in writers else "the file"
            raise SizeError(
                f"{operator}: the shape of {name!r} at {where} is "
                f"{_text(expected.tensors[name].shape)}, which is not known for all sizes"
            )


def _text(shape: tuple[int, ...]) -> str:
    return "x".join("?" if length < 0 else str(length) for length in shape) or "scalar"


def _signatures(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the signature of each input, empty where it leaves nothing open."""
    subgraphs = decode(read_model(path))
    model = model_of(path.name, subgraphs)
    found = {}
    for name in model.program.input_tensors:
        subgraph, index = model.locations[name]
        tensor = subgraphs[subgraph].tensors[index]
        found[name] = tensor.signature if tensor.has_free_dimension else ()
    return found
