"""How each of several models is read: with what was given and it has."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from arenite.pipeline.base.reading import Reading
from arenite.planner.errors import AreniteError, BindingError
from arenite.planner.importers import open_names


def readings_of(reading: Reading, paths: Sequence[Path]) -> list[Reading]:
    """Return the reading of each model, without the names that only others have.

    A model that cannot be read keeps all: reading it says what is wrong.

    Raises:
        BindingError: No model has a dimension or an input of that name.
    """
    given = [*reading.dims, *reading.shapes, *reading.values]
    if len(paths) == 1 or not given:
        return [reading] * len(paths)
    found: list[Reading] = []
    unknown = set(given)
    for path in paths:
        try:
            dims, inputs = open_names(path)
        except (AreniteError, OSError):
            found.append(reading)
            continue
        own = replace(
            reading,
            dims={name: size for name, size in reading.dims.items() if _has(dims, inputs, name)},
            shapes={name: each for name, each in reading.shapes.items() if name in inputs},
            values={name: each for name, each in reading.values.items() if name in inputs},
        )
        found.append(own)
        unknown.difference_update(own.dims, own.shapes, own.values)
    for name in given:
        if name in unknown:
            raise BindingError(name, "is a dimension or an input of none of the models")
    return found


def _has(dims: frozenset[str], inputs: frozenset[str], name: str) -> bool:
    """Tell whether a model has a free dimension; those of no stated rank have no names yet."""
    owner, colon, _ = name.rpartition(":")
    return name in dims or bool(colon and owner in inputs and f"{owner}:?" in dims)
