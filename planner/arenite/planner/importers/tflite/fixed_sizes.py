"""Refuse sizes and values that a TFLite file has no place for, and say which it leaves open."""

from collections.abc import Mapping
from pathlib import Path

from arenite.planner.errors import BindingError
from arenite.planner.files import read_model
from arenite.planner.importers.tflite.file import decode
from arenite.planner.importers.tflite.importer import model_of
from arenite.planner.program import Program


def check_fixed_sizes(
    path: Path,
    program: Program,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, float],
) -> None:
    """Return if what is asked of the inputs is what the file states.

    Args:
        path: The file.
        program: What was read from it.
        dims: Values of free dimensions by name.
        shapes: Of inputs by name.
        values: Of inputs by name.

    Raises:
        BindingError: It is not.
    """
    for name in dims:
        raise BindingError(name, "cannot be given; a TFLite file has no free dimensions")
    for name in values:
        raise BindingError(name, "cannot be given a value; only inputs of ONNX models can")
    for name, shape in shapes.items():
        if name not in program.input_tensors:
            known = ", ".join(map(repr, program.input_tensors))
            raise BindingError(name, f"is not an input of the model; known: {known}")
        stated = program.tensors[name].shape
        if stated == shape:
            continue
        text = "x".join(map(str, stated)) or "scalar"
        if name in _open_inputs(path):
            raise BindingError(
                name,
                f"has sizes that its signature leaves open, but is planned as the file states "
                f"it, {text}: the tensors after it have their sizes in the file; convert the "
                "model with the shape you want",
            )
        raise BindingError(name, f"is {text}, fixed in the file; leave --shape out")


def _open_inputs(path: Path) -> set[str]:
    """Return the inputs of which the file says that they may have other shapes."""
    subgraphs = decode(read_model(path))
    model = model_of(path.name, subgraphs)
    found = set()
    for name in model.program.input_tensors:
        subgraph, index = model.locations[name]
        if subgraphs[subgraph].tensors[index].has_free_dimension:
            found.add(name)
    return found
