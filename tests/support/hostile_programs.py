"""Program files as bytes: loaded, and with bits of them flipped."""

import random
import struct

from arenite.runtime import Session
from arenite.runtime.program import Assembly, program_pieces


def load(data: bytes) -> None:
    """Load and run a file's bytes."""
    with Session.of_pieces([data], "hostile") as session:
        session.invoke()


def file_of(assembly: Assembly) -> bytes:
    """Return the bytes of the file."""
    return b"".join(program_pieces(assembly))


def flipped(valid: bytes, generator: random.Random) -> bytes:
    """Return a valid file with bits of its program flipped, or telling numbers put there."""
    data = bytearray(valid)
    (size,) = struct.unpack_from("<Q", data, 16)
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        if generator.random() < 0.5:
            data[generator.randrange(32 + size)] ^= 1 << generator.randrange(8)
        else:
            place = 32 + 4 * generator.randrange(size // 4)
            value = generator.choice((-1, 0, 1, 2**31 - 1, -(2**31), 2**20, 4, 16))
            struct.pack_into("<i", data, place, value)
    return bytes(data)
