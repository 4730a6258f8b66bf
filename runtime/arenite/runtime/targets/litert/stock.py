"""The stock interpreter: its package, its public C structures, and the delegate that it asks.

The structures are declared in `tensorflow/lite/core/c/common.h`; each is cut off after the last
field we use. Natural C alignment gives the right layout on 64-bit and 32-bit systems.
"""

import ctypes
import importlib
import textwrap
from collections.abc import Callable
from enum import IntEnum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from arenite.planner import AreniteError
from arenite.planner.errors import MissingDependencyError, UnsupportedModelError
from arenite.runtime.errors import UnexpectedRuntimeError


class FixedShapeError(AreniteError):
    """A plan holds for the shapes it was made for; the interpreter refuses others."""


class StockPlacementWarning(UserWarning):
    """The interpreter places its tensors itself; the text says why."""


class AllocationType(IntEnum):
    """Owner of a tensor's memory."""

    NONE = 0
    FILE = 1
    ARENA = 2
    ARENA_PERSISTENT = 3
    DYNAMIC = 4
    PERSISTENT = 5
    CUSTOM = 6
    VARIANT_OBJECT = 7
    NON_CPU = 8


class TfLiteTensor(ctypes.Structure):
    """A tensor; the whole structure, since it comes in arrays."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("dims", ctypes.c_void_p),
        ("scale", ctypes.c_float),
        ("zero_point", ctypes.c_int32),
        ("allocation_type", ctypes.c_int),
        ("bytes", ctypes.c_size_t),
        ("allocation", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("delegate", ctypes.c_void_p),
        ("buffer_handle", ctypes.c_int),
        ("data_is_stale", ctypes.c_bool),
        ("is_variable", ctypes.c_bool),
        ("quantization_type", ctypes.c_int),
        ("quantization_params", ctypes.c_void_p),
        ("sparsity", ctypes.c_void_p),
        ("dims_signature", ctypes.c_void_p),
    )


class TfLiteNode(ctypes.Structure):
    """An operator; each field leads to a counted list of tensor indexes."""

    _fields_ = (
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("intermediates", ctypes.c_void_p),
        ("temporaries", ctypes.c_void_p),
    )


class TfLiteContext(ctypes.Structure):
    """The interpreter as a delegate sees it."""

    _fields_ = (
        ("tensors_size", ctypes.c_size_t),
        ("get_execution_plan", ctypes.c_void_p),
        ("tensors", ctypes.c_void_p),
        ("impl", ctypes.c_void_p),
        ("resize_tensor", ctypes.c_void_p),
        ("report_error", ctypes.c_void_p),
        ("add_tensors", ctypes.c_void_p),
        ("get_node_and_registration", ctypes.c_void_p),
    )


PREPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
GET_EXECUTION_PLAN = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
)
GET_NODE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_void_p),
)

ALLOW_DYNAMIC_TENSORS = 1
"""The delegate is called before memory is allocated, and the graph may still change."""


class TfLiteDelegate(ctypes.Structure):
    """The delegate that the interpreter calls before it allocates."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("prepare", PREPARE),
        ("copy_from_buffer_handle", ctypes.c_void_p),
        ("copy_to_buffer_handle", ctypes.c_void_p),
        ("free_buffer_handle", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("opaque_delegate_builder", ctypes.c_void_p),
    )


def indexes(address: int | None) -> tuple[int, ...]:
    """Return the entries of a `TfLiteIntArray`; none for a null pointer."""
    if not address:
        return ()
    size = ctypes.c_int.from_address(address).value
    start = address + ctypes.sizeof(ctypes.c_int)
    return tuple((ctypes.c_int * size).from_address(start))


def tensors(context: TfLiteContext) -> "ctypes.Array[TfLiteTensor]":
    """Return the tensors of the interpreter as they lie now; they may move later."""
    array: ctypes.Array[TfLiteTensor] = (TfLiteTensor * context.tensors_size).from_address(
        context.tensors
    )
    return array


def node_addresses(context_address: int) -> tuple[int, ...]:
    """Return where the operators lie, in the order they run.

    To be called while the interpreter asks a delegate, and at no other time.

    Raises:
        ValueError: The interpreter does not tell.
    """
    context = TfLiteContext.from_address(context_address)
    plan = ctypes.c_void_p()
    if GET_EXECUTION_PLAN(context.get_execution_plan)(context_address, ctypes.byref(plan)):
        raise ValueError("the interpreter has no execution plan")
    get_node = GET_NODE(context.get_node_and_registration)
    addresses = []
    for index in indexes(plan.value):
        node, registration = ctypes.c_void_p(), ctypes.c_void_p()
        failed = get_node(context_address, index, ctypes.byref(node), ctypes.byref(registration))
        if failed or node.value is None:
            raise ValueError(f"the interpreter has no operator {index}")
        addresses.append(node.value)
    return tuple(addresses)


_KNOWN: Final = {"ai_edge_litert": ("1.4", "2.0", "2.1", "2.3"), "tflite_runtime": ("2.14",)}
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


def load_interpreter(
    model: Path | bytes, num_threads: int, hook: PrepareHook | None = None
) -> Any:
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
    return UnsupportedModelError("model", f"rejected by {package()}: {reason}", path=path)
