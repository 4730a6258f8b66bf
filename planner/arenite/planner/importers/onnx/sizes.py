"""What an ONNX model leaves to be given: free dimensions and inputs."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import MissingDependencyError, about_file


def onnx_names(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the free dimensions and of the inputs.

    Raises:
        ModelError: The file cannot be read.
        MissingDependencyError: The package onnx is absent.
    """
    try:
        from arenite.planner.importers.onnx.binding import open_names
        from arenite.planner.importers.onnx.file import load_model
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise MissingDependencyError("onnx", "onnx", f"reading {path.name!r}") from error
    return open_names(load_model(path).graph)


def fixed_arrays(
    path: Path,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, float],
) -> dict[str, NDArray[np.generic] | None]:
    """Return for each input, in the model's order, its elements if it is fixed at a value.

    Raises:
        ModelError: The file cannot be read, or what is given does not fit it.
    """
    from arenite.planner.importers.onnx.binding import bind
    from arenite.planner.importers.onnx.file import load_model
    from arenite.planner.importers.onnx.fixed_inputs import filled

    with about_file(path):
        types = bind(load_model(path).graph, dims, shapes).inputs
        return {
            name: filled(name, each, values[name]) if name in values else None
            for name, each in types.items()
        }
