"""Read a TFLite file, with its weights or without."""

from pathlib import Path

from arenite.planner.errors import about_file
from arenite.planner.files import read_model
from arenite.planner.importers.tflite.importer import read_tflite_model
from arenite.planner.program import Program


def read_tflite(path: Path, *, weights: bool = False) -> Program:
    """Return the program of a TFLite model.

    Args:
        path: The file.
        weights: Whether constants, quantisation and options are to be known: for who runs the
            model, not for who only sizes it. A file with control flow is refused then.

    Raises:
        ModelFormatError: The file is damaged or no TFLite file.
        UnsupportedModelError: A tensor has no fixed size, or subgraphs enter themselves or
            unfold without measure.
        MissingDependencyError: The schema package is absent.
    """
    if not weights:
        return read_tflite_model(path).program
    from arenite.planner.importers.tflite.contents import TfliteContents

    with about_file(path):
        return TfliteContents(path.name, read_model(path)).program
