"""The stock session: how it is made, the options that keep an order, and its errors."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from arenite.planner import AreniteError
from arenite.planner.errors import ModelFormatError, UnsupportedModelError, needing
from arenite.planner.quiet_onnxruntime import quiet_options


class RunFailedError(AreniteError):
    """A run failed in ONNX Runtime; the text is its own."""


class InputMismatchError(AreniteError):
    """An array does not fit its input.

    Attributes:
        name: The input.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"input {name!r}: {reason}")
        self.name = name


class UnknownOutputError(AreniteError):
    """The model has no output of that name.

    Attributes:
        name: The unknown name.
        known: The names there are.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"unknown output {name!r}; known: {', '.join(map(repr, known))}")
        self.name = name
        self.known = tuple(known)


class StockSessionWarning(UserWarning):
    """ONNX Runtime takes its memory as it likes; the text says why."""


def stock_options(*, optimise: bool = True, num_threads: int = 1) -> Any:
    """Return the options of a stock session.

    Args:
        optimise: Let ONNX Runtime rewrite the graph, as it does by default.
        num_threads: Number of threads of the kernels.

    Raises:
        MissingDependencyError: The package onnxruntime is absent.
    """
    options = quiet_options("running a model in ONNX Runtime", num_threads=num_threads)
    if not optimise:
        options.graph_optimization_level = _package().GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def ordered_options() -> Any:
    """Return the options with which a stock session runs the nodes in the file's order.

    Raises:
        MissingDependencyError: The package onnxruntime is absent.
    """
    options = stock_options(optimise=False)
    options.execution_order = _package().ExecutionOrder.PRIORITY_BASED
    return options


def stock_session(model: Path | bytes, options: Any) -> Any:
    """Return a stock session on the CPU.

    Raises:
        UnsupportedModelError: ONNX Runtime refuses the model.
        MissingDependencyError: The package onnxruntime is absent.
    """
    source = model if isinstance(model, bytes) else str(model)
    with refusals(model):
        return _package().InferenceSession(source, options, providers=["CPUExecutionProvider"])


@contextmanager
def refusals(model: Path | bytes) -> Iterator[None]:
    """Convert errors of the stock session to ours.

    Raises:
        UnsupportedModelError: The stock session refused the model or failed.
    """
    try:
        yield
    except refusal_types() as error:
        raise refusal(model, error) from error


@contextmanager
def missing_files_named(model: Path) -> Iterator[None]:
    """Let a refusal for want of weights beside the model name the file that is expected.

    Raises:
        MissingDataError: ONNX Runtime refuses the model, and a file beside it is not as stated.
        UnsupportedModelError: It refuses the model for anything else.
    """
    try:
        yield
    except UnsupportedModelError:
        with suppress(ModuleNotFoundError, ModelFormatError, UnsupportedModelError):
            from arenite.planner.importers.onnx import check_files

            check_files(model)
        raise


def refusal_types() -> tuple[type[Exception], ...]:
    """Return the types of errors that a stock session raises for a model or a run."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    return (
        native.EPFail,
        native.Fail,
        native.InvalidArgument,
        native.InvalidGraph,
        native.InvalidProtobuf,
        native.NoSuchFile,
        native.NotImplemented,
        native.RuntimeException,
        RuntimeError,
        ValueError,
    )


def refusal(
    model: Path | bytes, error: Exception, origin: Path | bytes | None = None
) -> UnsupportedModelError:
    """Return our error for a model that ONNX Runtime refuses.

    Args:
        error: The error of ONNX Runtime.
        origin: The model that people know, if `model` is a file made of it.
    """
    known = model if origin is None else origin
    path = None if isinstance(known, bytes) else known
    text = str(error)
    if isinstance(model, Path) and model != known:
        text = text.replace(str(model), "the model" if path is None else path.name)
    reason = textwrap.shorten(text, 160, placeholder=" ...")
    return UnsupportedModelError("model", f"rejected by onnxruntime: {reason}", path=path)


def _package() -> Any:
    with needing("onnxruntime", "onnx", "running a model in ONNX Runtime"):
        import onnxruntime
    return onnxruntime
