"""Interpreters of TensorFlow Lite Micro that share one allocator, as firmware runs them.

The Python package gives each interpreter an arena of its own. Its library exports the C++
functions that firmware calls, though: here they are called by the names that the compiler gave
them, those of the Linux wheels for x86-64.
"""

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from arenite.pipeline.making.programs import random_array

_ROOM = {"resolver": 2**20, "interpreter": 2**16}
"""Bytes for objects whose sizes only the headers state: many times what they take."""
_ALIGNMENT = 64
_GREEDY = 0
"""The planner of memory that firmware gets by default."""
_ALLOCATOR, _INTERPRETER = "_ZN6tflite5micro14MicroAllocator", "_ZN6tflite5micro16MicroInterpreter"


class _Tensor(ctypes.Structure):
    """The first fields of a `TfLiteTensor` of TensorFlow Lite Micro."""

    _fields_ = (
        ("quantization", ctypes.c_void_p * 2), ("params", ctypes.c_uint64),
        ("data", ctypes.c_void_p), ("dims", ctypes.c_void_p), ("size", ctypes.c_size_t),
    )  # fmt: skip


class SharedInterpreters:
    """Interpreters of models in one arena: their heads share its bytes, their tails add up.

    It may bring down the process: run it in one of its own.

    Args:
        models: Bytes of TFLite files.
        arena_bytes: Bytes of the arena, more than are needed.

    Raises:
        RuntimeError: The interpreter cannot prepare a model.
        AttributeError: The library exports other names.
    """

    def __init__(self, models: Sequence[bytes], arena_bytes: int = 2**26) -> None:
        from tflite_micro.python.tflite_micro import _runtime, runtime

        self._library = ctypes.CDLL(_runtime.__file__)
        self._blocks: list[Any] = []  # all that lives as long as the interpreters
        resolver, self._arena = self._block(_ROOM["resolver"]), self._block(arena_bytes)
        self._call("_ZN6tflite17PythonOpsResolverC1Ev", None, resolver)
        self._allocator = self._call(
            f"{_ALLOCATOR}6CreateEPhmNS0_17MemoryPlannerTypeE", ctypes.c_void_p,
            self._arena, ctypes.c_size_t(arena_bytes), ctypes.c_int(_GREEDY),
        )  # fmt: skip
        self._interpreters = []
        for data in models:
            file = self._block(len(data), data)
            root = file + int.from_bytes(data[:4], "little")
            variables = None
            if count := runtime.count_resource_variables(data):
                variables = self._call(
                    "_ZN6tflite5micro22MicroResourceVariables6CreateEPNS0_14MicroAllocatorEi",
                    ctypes.c_void_p, self._allocator, ctypes.c_int(count),
                )  # fmt: skip
            made = self._block(_ROOM["interpreter"])
            self._call(
                f"{_INTERPRETER}C1EPKNS_5ModelERKNS0_15MicroOpResolverEPNS0_14MicroAllocatorE"
                "PNS0_22MicroResourceVariablesEPNS0_22MicroProfilerInterfaceE",
                None, made, root, resolver, self._allocator, variables, None,
            )  # fmt: skip
            if self._call(f"{_INTERPRETER}15AllocateTensorsEv", ctypes.c_int, made):
                raise RuntimeError("TensorFlow Lite Micro cannot prepare the model")
            self._interpreters.append(made)

    @property
    def used_bytes(self) -> int:
        """Bytes of the arena that all models take, as the allocator counts them."""
        used: int = self._call(
            "_ZNK6tflite5micro14MicroAllocator10used_bytesEv", ctypes.c_size_t, self._allocator
        )
        return used

    def run(self, number: int, inputs: Mapping[int, bytes], num_outputs: int) -> list[bytes]:
        """Run a model, and return its outputs.

        Args:
            number: Of the model.
            inputs: By number; others are read as they lie there.
            num_outputs: How many outputs to return.

        Raises:
            ValueError: An input has another size.
            RuntimeError: The run failed.
        """
        made = self._interpreters[number]
        for index, data in inputs.items():
            tensor = self._tensor("5inputEm", made, index)
            if tensor.size != len(data):
                raise ValueError(f"input {index} has {tensor.size} B, not {len(data)}")
            ctypes.memmove(tensor.data, data, len(data))
        if self._call(f"{_INTERPRETER}6InvokeEv", ctypes.c_int, made):
            raise RuntimeError("TensorFlow Lite Micro cannot run the model")
        outputs = (self._tensor("6outputEm", made, index) for index in range(num_outputs))
        return [ctypes.string_at(each.data, each.size) for each in outputs]

    def head(self, begin: int, size: int) -> bytes:
        """Return bytes of the head, which starts at the first byte of the arena."""
        return ctypes.string_at(self._arena + begin, size)

    def poison(self, byte: int, size: int) -> None:
        """Fill the first bytes of the head."""
        ctypes.memset(self._arena, byte, size)

    def _tensor(self, function: str, interpreter: int, index: int) -> Any:
        found = self._call(
            f"{_INTERPRETER}{function}", ctypes.c_void_p, interpreter, ctypes.c_size_t(index)
        )
        return ctypes.cast(found, ctypes.POINTER(_Tensor)).contents

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        function = self._library[name]
        function.restype = result
        return function(
            *(ctypes.c_void_p(each) if each is None or isinstance(each, int) else each
              for each in arguments)
        )  # fmt: skip

    def _block(self, size: int, data: bytes = b"") -> int:
        """Return the address of bytes that start as some data, and as zeros behind it."""
        block = ctypes.create_string_buffer(size + _ALIGNMENT)
        self._blocks.append(block)
        address = -(-ctypes.addressof(block) // _ALIGNMENT) * _ALIGNMENT
        ctypes.memmove(address, data, len(data))
        return address


def shared_bytes(
    stock: Sequence[bytes], planned: Sequence[bytes], ports: Sequence[tuple[int, int]]
) -> tuple[int, int, bool]:
    """Return bytes of one arena for all models, for both; and whether outputs are the same.

    They run in every order, each beside an interpreter with an arena of its own.

    Args:
        stock: Bytes of TFLite files.
        planned: The same models with a plan of theirs.
        ports: Numbers of inputs and outputs of each.

    Raises:
        RuntimeError: The interpreter cannot run a model.
    """
    from tflite_micro.python.tflite_micro.runtime import Interpreter

    alone = [Interpreter.from_bytes(data, arena_size=2**26) for data in stock]
    both = SharedInterpreters(stock), SharedInterpreters(planned)
    random = np.random.default_rng(0)
    same = True
    for order in itertools.permutations(range(len(stock))):
        for number in order:
            num_inputs, num_outputs = ports[number]
            inputs = {}
            for index in range(num_inputs):
                details = alone[number].get_input_details(index)
                drawn = random_array(random, np.dtype(details["dtype"]), tuple(details["shape"]))
                alone[number].set_input(drawn, index)
                inputs[index] = drawn.tobytes()
            alone[number].invoke()
            expected = [
                np.ascontiguousarray(alone[number].get_output(index)).tobytes()
                for index in range(num_outputs)
            ]
            same &= all(each.run(number, inputs, num_outputs) == expected for each in both)
    return both[0].used_bytes, both[1].used_bytes, same
