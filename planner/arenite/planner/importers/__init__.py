"""Importers: the only modules that know a file format.

Those of one format are in a package of its own.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.importers.annotations import annotated, read_annotations
    from arenite.planner.importers.csv import read_csv
    from arenite.planner.importers.models import (
        InputValues,
        Shapes,
        Source,
        load,
        model_format,
        open_names,
        open_shapes,
        read,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "InputValues", "Shapes", "Source", "annotated", "load", "model_format", "open_names",
    "open_shapes", "read", "read_annotations", "read_csv",
]  # fmt: skip
