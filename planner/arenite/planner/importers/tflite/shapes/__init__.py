"""The shapes that TFLite operators give their outputs, from the shapes of their inputs.

Only what a resized input passes through, or a value computed from a shape, is asked; an operator
that is not listed is refused then. A family of operators has a module and a table.
"""

from arenite.planner.importers.tflite.shapes.elementwise import ELEMENTWISE
from arenite.planner.importers.tflite.shapes.images import IMAGES
from arenite.planner.importers.tflite.shapes.movement import MOVEMENT, strided
from arenite.planner.importers.tflite.shapes.numbers import NUMBERS, SHAPE
from arenite.planner.importers.tflite.shapes.reduction import REDUCTION
from arenite.planner.importers.tflite.shapes.resized import (
    MisfitError,
    Options,
    Resized,
    Shape,
    ShapesByCode,
    UnknownShapeError,
    require,
)

__all__ = [
    "SHAPE",
    "SHAPES",
    "MisfitError",
    "Options",
    "Resized",
    "Shape",
    "UnknownShapeError",
    "require",
    "strided",
]

SHAPES: ShapesByCode = {**ELEMENTWISE, **IMAGES, **MOVEMENT, **NUMBERS, **REDUCTION}
"""The function of each operator that passes a new shape on."""
