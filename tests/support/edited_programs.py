"""Program files as bytes: loaded, edited as JSON before encoding, or with flipped bits."""

import copy
import json
import math
import random
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from arenite.pipeline.targets.compiling import Compiled, compile_model
from arenite.planner.units import align_up
from arenite.runtime import Session, _schema
from arenite.runtime.program import Assembly, program_pieces
from arenite.runtime.program.packing import packed, unpacked
from arenite.strategies import find

Root = dict[str, Any]


def edited(assembly: Assembly, edit: Callable[[Root], object]) -> bytes:
    """Return the bytes of the file after `edit` changed the JSON of its program.

    Raises:
        UnwritableProgramError: The schema has no room for the edit, which is then no hostile
            program: a key that is misspelt, a number that its field cannot hold.
    """
    root = copy.deepcopy(assembly.root)
    edit(root)
    return file_of(replace(assembly, root=root))


def apart(model: Path | Compiled) -> Assembly:
    """Return the program of a model in which no two records have the same bytes."""
    compiled = model if isinstance(model, Compiled) else compile_model(model)
    return compiled.assemble(find("no-reuse")(compiled.source.problem))


def split_memories(root: Root) -> None:
    """Let every other record of a program lie in a second memory; no two have the same bytes."""
    (memory,) = root["memories"]
    root["memories"].append(memory | {"name": "second", "alignment": 128})
    ends = {each["offset"]: each for each in root["records"]}
    for index, record in enumerate(root["records"]):
        record["memory"] = index % 2
    for tensor in root["tensors"]:
        if tensor["place"] == "memory":
            begin = max((each for each in ends if each <= tensor["offset"]), default=None)
            tensor["memory"] = 0 if begin is None else ends[begin]["memory"]


def read_unwritten(root: Root) -> None:
    """Let the first pool read what no step writes."""
    step = next(i for i, each in enumerate(root["steps"]) if each["kernel_type"] == "Pool2D")
    source = root["tensors"][root["steps"][step]["inputs"][0]]
    (memory,) = root["memories"]
    begin, size = memory["size"], 4 * math.prod(source["shape"])
    root["steps"][step]["inputs"] = [len(root["tensors"])]
    root["tensors"].append(source | {"name": "never written", "offset": begin})
    root["records"].append(
        {"name": "never written", "offset": begin, "size": size, "start": step, "end": step + 1}
    )
    memory["size"] += size


def program_of(path: Path) -> Root:
    """Return the JSON of the program in a file."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data, 16)
    text = _schema.decode(data[32 : 32 + size])
    return unpacked(json.loads(re.sub(r": ([+-]?inf|nan)\b", r': "\1"', text)))


def edited_file(path: Path, edit: Callable[[Root], object]) -> bytes:
    """Return the bytes of a program file after `edit` changed the JSON of its program."""
    data = path.read_bytes()
    (weights,) = struct.unpack_from("<Q", data, 24)
    root = program_of(path)
    edit(root)
    program = _schema.encode(json.dumps(packed(root)))
    start = align_up(32 + len(program), 4096)
    head = data[:16] + struct.pack("<QQ", len(program), start)
    return head + program + bytes(start - 32 - len(program)) + data[weights:]


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
