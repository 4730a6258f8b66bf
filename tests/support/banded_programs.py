"""Programs of layers over images, run whole or in bands of rows that lie anywhere."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from arenite.planner.units import align_up
from arenite.runtime.program import Assembly, program_pieces
from arenite.runtime.rewrites import packed_filter, packed_integer_filter

Turn = tuple[int, int, int]
"""A step, its first row, and how many; none: all of it."""

_SLACK = 128
_STEP_OF_SCALES = 0.04


@dataclass(frozen=True)
class Sliding:
    """How a window lies over the rows and columns of an image; padding is top, right, ..."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)

    def under(self, first: int, count: int, extent: int) -> range:
        """Return the rows of the source under the windows of some rows of the result."""
        begin = first * self.strides[0] - self.padding[0]
        reach = (self.kernel[0] - 1) * self.dilations[0] + 1
        end = (first + count - 1) * self.strides[0] - self.padding[0] + reach
        return range(min(max(begin, 0), extent), max(min(end, extent), 0))

    def extents(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the rows and columns of the result."""
        before = self.padding[0] + self.padding[2], self.padding[3] + self.padding[1]
        rows, columns = (
            (length + added - (kernel - 1) * dilation - 1) // stride + 1
            for length, added, kernel, dilation, stride in zip(
                (rows, columns), before, self.kernel, self.dilations, self.strides, strict=True
            )
        )
        return rows, columns

    @property
    def fields(self) -> dict[str, Any]:
        """What a step says of it, but for the kernel."""
        return {
            "strides": list(self.strides), "dilations": list(self.dilations),
            "padding": list(self.padding),
        }  # fmt: skip


@dataclass
class _Tensor:
    name: str
    shape: tuple[int, ...]
    type: str
    array: np.ndarray | None = None
    scales: tuple[float, ...] = ()
    zero_point: int = 0

    @property
    def row_size(self) -> int:
        return math.prod(self.shape[2:]) * np.dtype(self.type).itemsize

    @property
    def size(self) -> int:
        return math.prod(self.shape) * np.dtype(self.type).itemsize


@dataclass
class _Layer:
    kind: str
    kernel: dict[str, Any]
    inputs: list[int]
    result: int
    windows: list[tuple[int, Sliding]]
    """How rows of tensors are read; one may be read in two ways."""


@dataclass
class Network:
    """Layers one after another, whose first source is fed and whose last result is fetched.

    Attributes:
        shape: Rows, columns and channels of the source.
        dtype: Of all images.
        seed: Of the weights.
    """

    shape: tuple[int, int, int]
    dtype: str = "float32"
    seed: int = 0
    tensors: list[_Tensor] = field(default_factory=list)
    layers: list[_Layer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self.last = self._image(self.shape)

    def conv(
        self, outputs: int, window: Sliding, groups: int = 1, addend: int | None = None
    ) -> int:
        """Add a convolution of the last result, and return the tensor that it makes."""
        channels = self.extent(self.last)[2]
        shape = outputs, *window.kernel, channels // groups
        fields = window.fields | {"groups": groups}
        if self.dtype == "float32":
            weights = [self._floats(packed_filter(self._normal(shape), groups))]
        else:
            packed = packed_integer_filter(self._integers(shape), groups)
            weights = [self._constant(packed, scales=(1.0,), zero_point=0)]
            fields |= {"kernel": list(window.kernel)}
        return self._add("Conv2D", fields, weights, window, outputs, addend)

    def depthwise(self, window: Sliding, multiplier: int = 1, addend: int | None = None) -> int:
        """Add a depthwise convolution."""
        outputs = self.extent(self.last)[2] * multiplier
        shape = 1, *window.kernel, outputs
        if self.dtype == "float32":
            weights = [self._floats(self._normal(shape))]
        else:
            weights = [self._constant(self._integers(shape), scales=(1.0,), zero_point=3)]
        return self._add("DepthwiseConv2D", window.fields, weights, window, outputs, addend)

    def product(self, outputs: int, addend: int | None = None) -> int:
        """Add a product of each pixel with weights."""
        shape = outputs, 1, 1, self.extent(self.last)[2]
        if self.dtype == "float32":
            packed = packed_filter(self._normal(shape), 1)
            weights = [self._floats(packed.reshape(-1, shape[3], 16))]
        else:
            packed = packed_integer_filter(self._integers(shape), 1)
            weights = [self._constant(packed, scales=(1.0,), zero_point=0)]
        return self._add("FullyConnected", {}, weights, Sliding(), outputs, addend)

    def extent(self, tensor: int) -> tuple[int, int, int]:
        """Return the rows, columns and channels of an image."""
        _, rows, columns, channels = self.tensors[tensor].shape
        return rows, columns, channels

    def file(
        self, turns: Sequence[Turn] | None = None, *, scatter: random.Random | None = None
    ) -> bytes:
        """Return the bytes of the program file.

        Args:
            turns: What runs; None: each step once.
            scatter: Puts each row of what is neither fed nor fetched somewhere of its own.
        """
        return file_of_root(*self.root(turns, scatter=scatter))

    def root(
        self, turns: Sequence[Turn] | None = None, *, scatter: random.Random | None = None
    ) -> tuple[dict[str, Any], list[tuple[int, np.ndarray]]]:
        """Return the program as the schema's JSON, and its constants."""
        run = list(turns) if turns is not None else [(i, 0, 0) for i in range(len(self.layers))]
        arena = _Arena(len(run))
        constants: list[tuple[int, np.ndarray]] = []
        entries: list[dict[str, Any]] = []
        lives = _lives(self, run)
        weights_size = 0
        first, last = 0, self.layers[-1].result
        for number, tensor in enumerate(self.tensors):
            entry: dict[str, Any] = {
                "name": tensor.name, "type": tensor.type, "shape": list(tensor.shape),
                "scales": list(tensor.scales), "zero_point": tensor.zero_point,
            }  # fmt: skip
            if tensor.array is not None:
                entry |= {"place": "weights", "offset": weights_size}
                constants.append((weights_size, np.ascontiguousarray(tensor.array)))
                weights_size = align_up(weights_size + tensor.size, 64)
            elif scatter is None or number in (first, last):
                entry["offset"] = arena.keep(tensor.name, tensor.size)
            else:
                alignment = np.dtype(tensor.type).itemsize
                entry["rows"] = [
                    arena.place(f"{tensor.name}[{row}]", tensor.row_size, alignment, life, scatter)
                    for row, life in enumerate(lives[number])
                ]
            entries.append(entry)
        root = {
            "name": "layers", "digest": "0" * 64, "producer": "test",
            "memories": [{"name": "arena", "size": arena.size, "alignment": 64}],
            "weights_size": weights_size + _SLACK,
            "tensors": entries,
            "steps": [
                {"name": f"s{i}", "kernel_type": each.kind, "kernel": each.kernel,
                 "inputs": each.inputs, "outputs": [each.result]}
                for i, each in enumerate(self.layers)
            ],
            "records": arena.records,
            "inputs": [self._port(first, "x")], "outputs": [self._port(last, "y")],
        }  # fmt: skip
        if turns is not None:
            root["turns"] = [
                {"step": step, "first": begin, "count": count} for step, begin, count in turns
            ]
        return root, constants

    def _port(self, tensor: int, name: str) -> dict[str, Any]:
        shape = list(self.tensors[tensor].shape)
        return {"name": name, "tensor": tensor, "shape": shape, "permutation": [0, 1, 2, 3]}

    def _add(
        self, kind: str, fields: dict[str, Any], weights: list[int], window: Sliding,
        outputs: int, addend: int | None,
    ) -> int:  # fmt: skip
        source = self.last
        rows, columns, _ = self.extent(source)
        if self.dtype == "float32":
            bias = self._floats(self._normal((outputs,)))
            more = [] if addend is None else [addend]
        else:
            bias = self._constant(self._random.integers(-99, 99, outputs).astype(np.int32))
            scales = self._random.uniform(0.002, 0.02, outputs).astype(np.float32)
            more = [-1, self._constant(scales)]
        self.last = self._image((*window.extents(rows, columns), outputs))
        windows = [(source, window), *([] if addend is None else [(addend, Sliding())])]
        inputs = [source, *weights, bias, *more]
        self.layers.append(_Layer(kind, fields, inputs, self.last, windows))
        return self.last

    def _image(self, shape: tuple[int, int, int]) -> int:
        quantised = self.dtype != "float32"
        self.tensors.append(
            _Tensor(
                f"t{len(self.tensors)}", (1, *shape), self.dtype,
                scales=(_STEP_OF_SCALES,) if quantised else (),
                zero_point=(5 if self.dtype == "int8" else 120) if quantised else 0,
            )
        )  # fmt: skip
        return len(self.tensors) - 1

    def _constant(self, array: np.ndarray, **quantisation: Any) -> int:
        name = f"c{len(self.tensors)}"
        self.tensors.append(_Tensor(name, array.shape, array.dtype.name, array, **quantisation))
        return len(self.tensors) - 1

    def _floats(self, array: np.ndarray) -> int:
        return self._constant(array.astype(np.float32))

    def _normal(self, shape: tuple[int, ...]) -> np.ndarray:
        return self._random.standard_normal(shape).astype(np.float32)

    def _integers(self, shape: tuple[int, ...]) -> np.ndarray:
        return self._random.integers(-127, 128, shape).astype(np.int8)


def file_of_root(root: dict[str, Any], constants: list[tuple[int, np.ndarray]]) -> bytes:
    """Return the bytes of a program file."""
    assembly = Assembly(root, tuple(constants), root["weights_size"])
    return b"".join(program_pieces(assembly))


def in_bands(network: Network, sizes: Sequence[int], together: int = 1) -> list[Turn]:
    """Return turns that make the last result in bands of these sizes, repeated to its end.

    What a band needs is made when it is needed, so many rows together; nothing is made twice. Rows
    that no window reaches are made at the end.
    """
    made = [0] * len(network.layers)
    maker = {layer.result: i for i, layer in enumerate(network.layers)}
    turns: list[Turn] = []

    def pull(step: int, end: int, most: int) -> None:
        layer = network.layers[step]
        while made[step] < end:
            count = min(most, network.extent(layer.result)[0] - made[step])
            for tensor, window in layer.windows:
                if tensor in maker:
                    under = window.under(made[step], count, network.extent(tensor)[0])
                    pull(maker[tensor], under.stop, together)
            turns.append((step, made[step], count))
            made[step] += count

    rows = network.extent(network.layers[-1].result)[0]
    for band in _repeated(sizes):
        if made[-1] == rows:
            break
        pull(len(made) - 1, made[-1] + 1, band)
    for step, layer in enumerate(network.layers):
        pull(step, network.extent(layer.result)[0], together)
    return turns


def _repeated(sizes: Sequence[int]) -> Iterator[int]:
    while True:
        yield from sizes


def _lives(network: Network, turns: Sequence[Turn]) -> dict[int, list[tuple[int, int]]]:
    """Return the turns at which each row of each result is in use."""
    births: dict[tuple[int, int], int] = {}
    deaths: dict[tuple[int, int], int] = {}
    for number, (step, first, count) in enumerate(turns):
        layer = network.layers[step]
        begin, length = (first, count) if count else (0, network.extent(layer.result)[0])
        for row in range(begin, begin + length):
            births.setdefault((layer.result, row), number)
            deaths[layer.result, row] = number
        for tensor, window in layer.windows:
            for row in window.under(begin, length, network.extent(tensor)[0]):
                deaths[tensor, row] = number
    return {
        layer.result: [
            (births.get((layer.result, row), 0), deaths.get((layer.result, row), 0) + 1)
            for row in range(network.extent(layer.result)[0])
        ]
        for layer in network.layers
    }


class _Arena:
    """Where everything lies.

    Attributes:
        records: As the schema has them.
        size: Bytes.
    """

    def __init__(self, turns: int) -> None:
        self._turns = max(turns, 1)
        self.records: list[dict[str, Any]] = []
        self.size = 0

    def keep(self, name: str, size: int) -> int:
        """Return the offset of something that is there from the first turn to the last."""
        offset = align_up(self.size, 64)
        self._add(name, offset, size, (0, self._turns))
        return offset

    def place(
        self, name: str, size: int, alignment: int, life: tuple[int, int], draw: random.Random
    ) -> int:
        """Return an offset at which nothing lies during a life, the first after a random one."""
        others = sorted(
            (each["offset"], each["offset"] + each["size"])
            for each in self.records
            if each["start"] < life[1] and life[0] < each["end"]
        )
        offset = align_up(draw.randrange(self.size + 1), alignment)
        for begin, end in others:
            if begin < offset + size and offset < end:
                offset = align_up(end, alignment)
        self._add(name, offset, size, life)
        return offset

    def _add(self, name: str, offset: int, size: int, life: tuple[int, int]) -> None:
        start, end = life
        self.records.append(
            {"name": name, "memory": 0, "offset": offset, "size": size, "start": start, "end": end}
        )
        self.size = max(self.size, offset + size)
