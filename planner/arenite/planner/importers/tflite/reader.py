"""Read a TFLite file, with or without its weights."""

from pathlib import Path

from arenite.planner.errors import about_file
from arenite.planner.files import read_model
from arenite.planner.importers.tflite.importer import read_tflite_model
from arenite.planner.program import Program


def read_tflite(path: Path, *, weights: bool = False) -> Program:
    """Return the program of a TFLite model.

    Args:
        path: The file.
        weights: Whether to read constants, quantisation and options. Needed to run the
            model, not to size it. Files with control flow are then refused.

    Raises:
        ModelFormatError: The file is damaged or is not a TFLite file.
        UnsupportedModelError: A tensor has no fixed size, or subgraphs are recursive or
            unfold to too many operands.
        MissingDependencyError: The schema package is absent.
    """
    if not weights:
        return read_tflite_model(path).program
    from arenite.planner.importers.tflite.contents import TfliteContents

    with about_file(path):
        return TfliteContents(path.name, read_model(path)).program
