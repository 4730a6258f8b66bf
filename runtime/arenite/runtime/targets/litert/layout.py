"""The public C structures of TFLite, as far as a plan needs them.

They are declared in `tensorflow/lite/core/c/common.h`; each is cut off after the last
field we use. Natural C alignment gives the right layout on 64-bit and 32-bit systems.
"""

import ctypes
from enum import IntEnum


class AllocationType(IntEnum):
    """Who holds a tensor's memory."""

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
    """What a delegate sees of the interpreter."""

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
"""The delegate is asked before memory is allocated, and the graph stays open to change."""


class TfLiteDelegate(ctypes.Structure):
    """What the interpreter asks before it allocates."""

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
        raise ValueError("the interpreter does not tell its execution plan")
    get_node = GET_NODE(context.get_node_and_registration)
    addresses = []
    for index in indexes(plan.value):
        node, registration = ctypes.c_void_p(), ctypes.c_void_p()
        failed = get_node(context_address, index, ctypes.byref(node), ctypes.byref(registration))
        if failed or node.value is None:
            raise ValueError(f"the interpreter does not show its operator {index}")
        addresses.append(node.value)
    return tuple(addresses)
