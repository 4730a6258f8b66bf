"""Model files as they are given: one by one, or by the folder they lie in."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from arenite.planner.errors import AreniteError

_SUFFIXES = frozenset({".onnx", ".tflite", ".lite", ".csv"})


class NoModelsError(AreniteError):
    """A folder holds no model.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder}: there is no model in this folder or below; "
            f"looked for {', '.join(sorted(_SUFFIXES))}"
        )
        self.folder = folder


def model_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of `paths` once each; a folder stands for the models in and below it.

    What a folder holds comes in the order of its names; hidden files and folders do not.

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
