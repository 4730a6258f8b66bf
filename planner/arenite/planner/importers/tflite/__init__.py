"""TFLite: the format is known in this package and nowhere else."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.importers.tflite.contents import Options
    from arenite.planner.importers.tflite.importer import TfliteModel, read_tflite_model
    from arenite.planner.importers.tflite.operators import Loop, steps_of, tflite_operator
    from arenite.planner.importers.tflite.reader import read_tflite
    from arenite.planner.importers.tflite.resizing import MAX_VALUES, VALUES
    from arenite.planner.importers.tflite.shapes import (
        SHAPE,
        SHAPES,
        MisfitError,
        Resized,
        Shape,
        UnknownShapeError,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "MAX_VALUES", "SHAPE", "SHAPES", "VALUES", "Loop", "MisfitError", "Options", "Resized",
    "Shape", "TfliteModel", "UnknownShapeError", "read_tflite", "read_tflite_model", "steps_of",
    "tflite_operator",
]  # fmt: skip
