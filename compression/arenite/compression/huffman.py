"""Huffman coding of symbols, one per byte, by the literal coder of Zstandard.

Parameters that leave its match finder next to nothing to do make Zstandard an ideal-size
Huffman coder that decodes gigabytes a second. Its standard levels lose 15 % here, as they look
for repetitions that quantised weights do not have. Frames lack the magic number, which would
be the same four bytes in each.
"""

from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from arenite.compression.errors import CodedError

_PARAMETERS = zstandard.ZstdCompressionParameters(
    window_log=17, hash_log=6, chain_log=6, search_log=1, min_match=7, target_length=0,
    strategy=zstandard.STRATEGY_FAST, write_content_size=True, write_checksum=False,
    write_dict_id=False, format=zstandard.FORMAT_ZSTD1_MAGICLESS,
)  # fmt: skip


def compress(symbols: NDArray[np.uint8]) -> bytes:
    """Return the code of symbols, including its decoding tables."""
    compressor = zstandard.ZstdCompressor(compression_params=_PARAMETERS)
    return bytes(compressor.compress(_bytes(symbols)))


def compress_text(text: bytes) -> bytes:
    """Return the code of repetitive bytes, such as names; `decompress` reads it."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        19, source_size=len(text), write_content_size=True, write_checksum=False,
        write_dict_id=False, format=zstandard.FORMAT_ZSTD1_MAGICLESS,
    )  # fmt: skip
    return bytes(zstandard.ZstdCompressor(compression_params=parameters).compress(text))


def decompress(code: bytes | memoryview, count: int) -> NDArray[np.uint8]:
    """Return the given number of symbols.

    Raises:
        CodedError: The code is damaged, or of another number of symbols.
    """
    decompressor = zstandard.ZstdDecompressor(format=zstandard.FORMAT_ZSTD1_MAGICLESS)
    try:
        stream = decompressor.stream_reader(code, read_across_frames=False)
        decoded = stream.read(count + 1)
    except zstandard.ZstdError as error:
        raise CodedError(str(error)) from error
    if len(decoded) != count:
        raise CodedError(f"a code is not of {count} symbols")
    return np.frombuffer(decoded, np.uint8)


def _bytes(symbols: NDArray[np.uint8]) -> Any:
    return np.ascontiguousarray(symbols).data
