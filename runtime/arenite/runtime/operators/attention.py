"""Attention, and the rotation of its queries and keys by their places."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import DType, Tensor
from arenite.planner.operators import Normalising, Operands, Operator, Region, same_layout, whole
from arenite.planner.tensors import ROW_AXIS
from arenite.runtime.operators.base import RuntimeOperator, makes_one_image

LARGEST_HEAD = 256
"""Most elements of a key or of a value in one head."""
_CACHE_BLOCK = 32
"""Elements of a row of a cache of 8 bits that share a scale."""
_SCALE_BYTES = 2
_BYTE_QUERIES = 16
"""Queries of bytes whose scores exist at a time, of each head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(Normalising, RuntimeOperator):
    """Softmax of the scores of queries and keys, times the values, head by head.

    Reads queries: B, S, heads * D; keys and values: B, T, key_heads * D and B, T, key_heads * Dv,
    or by heads B, key_heads, T, D and B, key_heads, T, Dv; an optional addend of the scores
    B or 1, S or 1, heads or 1, T; and an optional number of keys that count, of each batch, int32.
    Keys and values may be of 16-bit floats beside others of 32, or of 8 bits as CacheRows makes
    them: then the rows of a head have the bytes of D or Dv elements.
    Makes B, S, heads * Dv. The scores of a query exist for a block of keys at a time. A query that
    sees no key gives zeros.

    Attributes:
        heads: Of the queries, a multiple of `key_heads`: consecutive ones share a head of keys.
        key_heads: Of the keys and values.
        scale: Factor of the scores; of those of bytes where the softmax reads them.
        causal: Whether a query sees only the keys up to its own place. The last query is at the
            place of the last key that counts.
        window: How many keys up to its own place a causal query sees at most; 0: all.
        softcap: Bound c of the scores: they become c * tanh(score / c) before the addend; 0: none.
    """

    number: ClassVar[int] = 44
    QUERIES: ClassVar[int] = 0
    KEYS: ClassVar[int] = 1
    VALUES: ClassVar[int] = 2
    ADDEND: ClassVar[int] = 3
    LENGTHS: ClassVar[int] = 4
    ROUNDINGS: ClassVar[int] = 5
    """Of bytes: scale and zero point of the scores, then of the weights, both of which are rounded
    to bytes; floats. There are neither an addend nor lengths.
    """
    TABLE: ClassVar[int] = 6
    """What the softmax reads for each score of bytes, from -128 on: 256 bytes; none: the score."""

    heads: int
    key_heads: int
    scale: float
    causal: bool = False
    window: int = 0
    softcap: float = 0.0

    def takes_halves(self, position: int) -> bool:
        """Tell whether it is that of keys or of values: a block of them is converted at a time."""
        return position in (self.KEYS, self.VALUES)

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the queries: a head of one is read before its result is written."""
        queries = operands.source
        if queries is None or not same_layout(queries, operands.result):
            return ()
        others = {_storage(each) for each in operands.inputs[1:] if each is not None}
        return () if _storage(queries) in others else (0,)

    def multiply_adds(self, operands: Operands) -> int:
        queries, keys, result = operands.source, operands.input(1), operands.result
        if queries is None or keys is None or result is None:
            return 0
        return (queries.num_elements + result.num_elements) * _num_keys(keys)

    def kernel_scratch(self, operands: Operands) -> int:
        """Return the bytes of the scores that exist at a time, if they are bytes."""
        return self.heads * _BYTE_QUERIES * num_byte_scores(operands)

    def row_scratch(self, operands: Operands) -> int:
        # Not super(): a dataclass with slots is a copy of the class that this names.
        return self.kernel_scratch(operands) or RuntimeOperator.row_scratch(self, operands)

    def makes_rows(self, operands: Operands) -> bool:
        """Tell whether the queries are of one batch."""
        return makes_one_image(operands)

    def reads_rows(self, position: int) -> bool:
        return position in (self.QUERIES, self.ADDEND)

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the same rows of queries and addend, and the whole of other inputs."""
        tensor = operands.inputs[position]
        assert tensor is not None
        if not self.reads_rows(position) or len(tensor.shape) <= ROW_AXIS:
            # Not super(): a dataclass with slots is a copy of the class that this names.
            return Operator.input_region(self, operands, position, region)
        everything = list(whole(tensor))
        rows = region[ROW_AXIS]
        everything[ROW_AXIS] = rows if tensor.shape[ROW_AXIS] != 1 else (0, 1)
        return tuple(everything)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRows(RuntimeOperator):
    """Rounds rows of floats to integers of 8 bits, as attention reads them from a cache.

    Reads x: ..., heads * width, float32. Makes as many rows of bytes, int8: of each head its
    `width` integers, then a scale, float16, for each block of 32 of them. An element is the
    integer times the scale of its block, of which the element furthest from 0 is 127 or -127, or
    less if the scale is subnormal.
    """

    number: ClassVar[int] = 66

    width: int

    @property
    def row_bytes(self) -> int:
        """The bytes of a head."""
        return self.width + _SCALE_BYTES * -(-self.width // _CACHE_BLOCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotary(Normalising, RuntimeOperator):
    """Rotates pairs of elements of each head by the angle of their place.

    Reads x: B, S, heads * D, and cosines and sines of angles: B or 1, S, R / 2. The first R
    elements of a head are rotated: element i with element i + R / 2, or if they are interleaved
    element 2 i with the one after it.
    """

    number: ClassVar[int] = 45

    heads: int
    interleaved: bool = False

    def makes_rows(self, operands: Operands) -> bool:
        """Tell whether the elements are of one batch."""
        return makes_one_image(operands)

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the same rows."""
        tensor = operands.inputs[position]
        assert tensor is not None
        everything = list(whole(tensor))
        everything[ROW_AXIS] = region[ROW_AXIS]
        return tuple(everything)


def num_byte_scores(operands: Operands) -> int:
    """Return the scores of a query in one head of attention, 0 if they are not bytes."""
    queries, keys = operands.source, operands.input(Attention.KEYS)
    if queries is None or keys is None or queries.dtype is not DType.INT8:
        return 0
    return _num_keys(keys)


def _num_keys(keys: Tensor) -> int:
    return keys.shape[1 if len(keys.shape) == 3 else 2]


def _storage(tensor: Tensor) -> str:
    return tensor.name if tensor.alias is None else tensor.alias.tensor
