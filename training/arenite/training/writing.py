"""Write a training step, once it is shown to load."""

from pathlib import Path
from typing import Final

import onnx
import onnx.checker

from arenite.planner.errors import MissingDependencyError, about_file
from arenite.planner.files import write_atomically
from arenite.planner.quiet_onnxruntime import quiet_options
from arenite.training.errors import TrainingError

MOST_BYTES: Final = (1 << 31) - 1
"""An ONNX file without external data has less than 2 GiB."""


def write_step(path: Path, model: onnx.ModelProto) -> None:
    """Write a step whole or not at all: after the checker of ONNX, and ONNX Runtime if it is here.

    Raises:
        TrainingError: It takes 2 GiB or more, or does not load.
        OutputError: It cannot be written; what was there is as it was.
    """
    with about_file(path):
        if model.ByteSize() > MOST_BYTES:
            raise TrainingError("the step takes 2 GiB or more, which an ONNX file cannot hold")
        write_atomically(path, model.SerializeToString(), check=_check)


def _check(path: Path) -> None:
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise TrainingError(f"the step is no valid ONNX model: {_line(error)}") from error
    try:
        options = quiet_options("loading a training step")
    except MissingDependencyError:
        return
    import onnxruntime

    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's own classes are all but Exception itself
        raise TrainingError(f"ONNX Runtime does not load the step: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
