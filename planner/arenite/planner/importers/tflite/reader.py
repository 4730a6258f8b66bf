"""Read a TFLite file, with or without its weights."""

from pathlib import Path

from arenite.planner.errors import about_file
from arenite.planner.files import read_model
from arenite.planner.importers.tflite.file import decode
from arenite.planner.importers.tflite.importer import model_of
from arenite.planner.importers.tflite.variables import Variables
from arenite.planner.program import Program


def read_tflite(path: Path, *, weights: bool = False) -> Program:
    """Return the program of a TFLite model; its variables are states where they can be.

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
        with about_file(path):
            subgraphs = decode(read_model(path))
            return model_of(path.name, subgraphs, Variables.of(subgraphs)).program
    from arenite.planner.importers.tflite.contents import TfliteContents

    with about_file(path):
        return TfliteContents(path.name, read_model(path)).program
