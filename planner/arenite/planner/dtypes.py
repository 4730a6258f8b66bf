"""Element types and how many bits each takes in memory."""

from enum import Enum


class DType(Enum):
    """An element type; the value is its name and the bits of one element.

    Sub-byte types are packed, two or more to a byte, without padding between rows.
    """

    BOOL = ("bool", 8)
    INT2 = ("int2", 2)
    UINT2 = ("uint2", 2)
    INT4 = ("int4", 4)
    UINT4 = ("uint4", 4)
    FLOAT4E2M1 = ("float4e2m1", 4)
    INT8 = ("int8", 8)
    UINT8 = ("uint8", 8)
    FLOAT8E4M3FN = ("float8e4m3fn", 8)
    FLOAT8E4M3FNUZ = ("float8e4m3fnuz", 8)
    FLOAT8E5M2 = ("float8e5m2", 8)
    FLOAT8E5M2FNUZ = ("float8e5m2fnuz", 8)
    FLOAT8E8M0 = ("float8e8m0", 8)
    INT16 = ("int16", 16)
    UINT16 = ("uint16", 16)
    FLOAT16 = ("float16", 16)
    BFLOAT16 = ("bfloat16", 16)
    INT32 = ("int32", 32)
    UINT32 = ("uint32", 32)
    FLOAT32 = ("float32", 32)
    INT64 = ("int64", 64)
    UINT64 = ("uint64", 64)
    FLOAT64 = ("float64", 64)
    COMPLEX64 = ("complex64", 64)
    COMPLEX128 = ("complex128", 128)

    @classmethod
    def of_label(cls, label: str) -> "DType":
        """Return the type of a name.

        Raises:
            KeyError: No type has that name.
        """
        return _BY_LABEL[label]

    @property
    def label(self) -> str:
        """The type's name, as in numpy where numpy has it."""
        return self.value[0]

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return self.value[1]

    def num_bytes(self, num_elements: int) -> int:
        """Return the bytes that `num_elements` packed elements take."""
        return -(-num_elements * self.bits // 8)


_BY_LABEL = {dtype.label: dtype for dtype in DType}
