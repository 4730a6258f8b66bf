"""Model files of a comparison, and how each of several is read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from arenite.pipeline.base.reading import Reading
from arenite.planner import AreniteError, open_names
from arenite.planner.errors import BindingError

_SUFFIXES = frozenset({".onnx", ".tflite", ".lite", ".csv"})


class NoModelsError(AreniteError):
    """A folder holds no model."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder}: there is no model in this folder or below; "
            f"looked for {', '.join(sorted(_SUFFIXES))}"
        )
        self.folder = folder


def find_model_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of `paths` once each; a folder stands for the models in and below it.

    The models of a folder come in the order of their names, without hidden ones.

    Raises:
        NoModelsError: A folder has none.
    """
    seen: set[Path] = set()
    for path in paths:
        for file in _below(path) if path.is_dir() else (path,):
            if file not in seen:
                seen.add(file)
                yield file


def _below(folder: Path) -> list[Path]:
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in _SUFFIXES
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
    )
    if not files:
        raise NoModelsError(folder)
    return files


def readings_of(reading: Reading, paths: Sequence[Path]) -> list[Reading]:
    """Return the reading of each model, without the names that only others have.

    A model that cannot be read keeps all names: reading it raises the error.

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
