"""The stock interpreter: which package it comes from, and how we are asked by it."""

import ctypes
import importlib
import textwrap
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from arenite.planner.errors import MissingDependencyError, UnsupportedModelError
from arenite.runtime.targets.litert.errors import UnexpectedRuntimeError
from arenite.runtime.targets.litert.layout import (
    ALLOW_DYNAMIC_TENSORS,
    PREPARE,
    TfLiteDelegate,
)

_KNOWN: Final = {
    "ai_edge_litert": ("1.4", "2.0", "2.1", "2.3"),
    "tflite_runtime": ("2.14",),
}
"""Packages in order of preference, and the versions whose structures we know."""


class PrepareHook:
    """A delegate that takes no operator: it only looks, and places tensors.

    Attributes:
        context_address: Address of the first subgraph's context; 0 until it is prepared.
        num_subgraphs: Number of subgraphs prepared.
        error: The error in the callback, if any.
        keeps: Objects that must live as long as the interpreter.

    Args:
        callback: Called once, with the address of the context.
    """

    def __init__(self, callback: Callable[[int], None], keeps: object = None) -> None:
        self.context_address = 0
        self.num_subgraphs = 0
        self.error: Exception | None = None
        self.keeps = keeps
        self._callback = callback
        self._prepare = PREPARE(self._on_prepare)
        self._delegate = TfLiteDelegate(prepare=self._prepare, flags=ALLOW_DYNAMIC_TENSORS)

    def _on_prepare(self, context_address: int, _delegate_address: int) -> int:
        self.num_subgraphs += 1
        if self.num_subgraphs > 1:
            return 0
        self.context_address = context_address
        try:
            self._callback(context_address)
        except Exception as error:  # none may leave a C callback
            self.error = error
            return 1
        return 0

    def _get_native_delegate_pointer(self) -> int:
        return ctypes.addressof(self._delegate)


def package() -> str:
    """Return the name of the package that holds the stock interpreter.

    Raises:
        MissingDependencyError: There is none.
    """
    for name in _KNOWN:
        if find_spec(name) is not None:
            return name
    raise MissingDependencyError("ai_edge_litert", "litert", "running a model in LiteRT")


def check_version() -> None:
    """Check that the structures of the installed runtime are known.

    Raises:
        UnexpectedRuntimeError: They are not.
        MissingDependencyError: There is no runtime.
    """
    name = package()
    try:
        installed = version(name)
    except PackageNotFoundError:
        installed = "of unknown version"
    if ".".join(installed.split(".")[:2]) not in _KNOWN[name]:
        raise UnexpectedRuntimeError(
            f"{name} {installed} has not been tried; known are {', '.join(_KNOWN[name])}"
        )


def load(model: Path | bytes, num_threads: int, hook: PrepareHook | None = None) -> Any:
    """Return a stock interpreter with built-in kernels, its memory not yet allocated.

    Without its default delegates: XNNPACK would take operators, and the tensors between
    them, out of the arena.

    Raises:
        UnsupportedModelError: It refuses the model.
        UnexpectedRuntimeError: The hook failed.
        MissingDependencyError: There is no runtime.
    """
    module = importlib.import_module(f"{package()}.interpreter")
    source = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    try:
        return module.Interpreter(
            **source,
            num_threads=num_threads,
            experimental_delegates=None if hook is None else [hook],
            experimental_op_resolver_type=module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
    except (RuntimeError, ValueError) as error:
        if hook is not None and hook.error is not None:
            raise UnexpectedRuntimeError(str(hook.error)) from hook.error
        raise refusal(model, error) from error


def refusal(model: Path | bytes, error: Exception) -> UnsupportedModelError:
    """Return our error for a model that the runtime refuses."""
    path = None if isinstance(model, bytes) else model
    # The runtime repeats itself for every tensor it dislikes.
    reason = textwrap.shorten(str(error), 160, placeholder=" ...")
    return UnsupportedModelError("model", f"{package()} refuses it: {reason}", path=path)
