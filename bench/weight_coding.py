"""Sizes and speed of coded weights: published networks, a real one, and NNCodec.

    python bench/weight_coding.py [--rounds N] [--json] [NETWORK ...]

1. Weights of the shapes, densities and bits that Deep Compression published, their values normal
   and random: bytes beside an ideal Huffman coder, which spends whole bits but nothing on tables,
   on the same symbols in the better layout of each layer; and the ratio beside the paper's.
2. The SqueezeNet v1.0 of its authors, from `../shared`: bytes of the whole container, each bit
   checked. Its expand layers come before pools where they do in SqueezeNet v1.0.
3. NNCodec (ISO/IEC 15938-17), if `nncodec` is installed, on the same weights: size, error,
   seconds. It lets numpy be below 2, so it may need an environment of its own.
"""

import heapq
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

import deep_compressed_squeezenet as squeezenet
from arenite.compression import code, decode, pack, unpack
from harness import Spread, bench, emit, interleaved, note, parser, table, timed
from published_networks import PUBLISHED

GAP_BITS = (4, 5, 8)
NUM_ROUNDS = 3
NNCODEC: dict[str, dict[str, Any]] = {
    "step -38": {"qp": -38},
    "step -32": {"qp": -32},
}
"""Options of NNCodec by what the table calls them."""


@dataclass(frozen=True)
class Size:
    """Bytes of one network.

    Attributes:
        network: Its name.
        dense: As 32-bit floats.
        coded: As coded.
        ideal: Of an ideal Huffman coder, codebooks included.
        published: How many times smaller, in the paper; None if it does not say.
    """

    network: str
    dense: int
    coded: int
    ideal: int
    published: float | None


@dataclass(frozen=True)
class Speed:
    """One coder on one set of weights.

    Attributes:
        coder: Its name.
        weights: Whose.
        coded: Bytes.
        ratio: How many times smaller.
        error: Squared, relative to the squared weights.
        encode: Bytes of 32-bit floats a second.
        decode: The same.
    """

    coder: str
    weights: str
    coded: int
    ratio: float
    error: float
    encode: float
    decode: float


def huffman_bits(symbols: npt.NDArray[np.integer]) -> int:
    """Return the bits of symbols in the best code that spends whole bits on each."""
    counts = [int(count) for count in np.bincount(symbols) if count]
    if len(counts) < 2:
        return sum(counts)
    heapq.heapify(counts)
    total = 0
    while len(counts) > 1:
        joined = heapq.heappop(counts) + heapq.heappop(counts)
        total += joined
        heapq.heappush(counts, joined)
    return total


def ideal_size(weights: npt.NDArray[np.float32]) -> int:
    """Return the bytes of the codebook and of ideal codes, in the best layout."""
    values, indices = np.unique(weights, return_inverse=True)
    indices = indices.reshape(-1)
    filled = np.flatnonzero(weights.reshape(-1))
    candidates = [huffman_bits(indices)]
    if filled.size < weights.size:
        kept = indices[filled]
        mask = np.packbits(weights.reshape(-1) != 0)
        candidates.append(huffman_bits(kept) + huffman_bits(mask))
        gaps = np.diff(filled, prepend=-1) - 1
        for bits in GAP_BITS:
            span = 1 << bits
            num_fillers = gaps // span
            all_gaps = np.concatenate((gaps % span, np.full(int(num_fillers.sum()), span - 1)))
            zero = int(np.searchsorted(values, 0))
            fillers = np.full(int(num_fillers.sum()), zero)
            candidates.append(
                huffman_bits(np.concatenate((kept, fillers))) + huffman_bits(all_gaps)
            )
    return 4 * values.size + -(-min(candidates) // 8)


def published_sizes(names: Sequence[str]) -> Iterable[Size]:
    """Yield networks of the paper."""
    for name in names:
        network = PUBLISHED[name]
        dense = coded = ideal = 0
        for seed, layer in enumerate(network.layers):
            weights = layer.weights(seed)
            found = code(weights)
            assert found is not None
            assert decode(bytes(found), weights.shape).tobytes() == weights.tobytes()
            dense += weights.nbytes
            coded += found.size
            ideal += ideal_size(weights)
        yield Size(name, dense, coded, ideal, network.rate)


def real_size() -> Size:
    """Return the SqueezeNet of the authors: the container, biases and names included."""
    tensors = squeezenet.read()
    packed = pack(tensors)
    restored = unpack(packed)
    assert all(restored[name].tobytes() == each.tobytes() for name, each in tensors.items())
    ideal = sum(ideal_size(each) if each.ndim > 1 else each.nbytes for each in tensors.values())
    dense = sum(each.nbytes for each in tensors.values())
    return Size("SqueezeNet v1.0", dense, len(packed), ideal, None)


def speeds(num_rounds: int) -> Iterable[Speed]:
    """Yield our coder, and NNCodec, on a layer of VGG-16 and on SqueezeNet."""
    (layer,) = (each for each in PUBLISHED["VGG-16"].layers if each.name == "fc8")
    sets = {f"VGG-16 {layer.name}": {layer.name: layer.weights(0)}}
    if squeezenet.FILE.is_file():
        sets["SqueezeNet v1.0"] = squeezenet.read()
    for name, tensors in sets.items():
        yield speed("arenite", name, tensors, pack, unpack, num_rounds)
        if find_spec("nncodec") is None:
            note("nncodec is not installed: left out")
            continue
        for label, options in NNCODEC.items():
            yield speed(
                f"NNCodec, {label}", name, tensors,
                partial(nncodec_encode, **options), nncodec_decode, num_rounds,
            )  # fmt: skip


def speed(
    coder: str,
    name: str,
    tensors: dict[str, npt.NDArray[np.float32]],
    encode: Callable[[dict[str, npt.NDArray[np.float32]]], bytes],
    decode: Callable[[bytes], dict[str, npt.NDArray[np.float32]]],
    num_rounds: int,
) -> Speed:
    """Return what a coder does with the weights."""
    dense = sum(each.nbytes for each in tensors.values())
    coded = encode(tensors)
    restored = decode(coded)
    seconds = interleaved(
        {
            "encode": lambda: timed(lambda: encode(tensors))[0],
            "decode": lambda: timed(lambda: decode(coded))[0],
        },
        num_rounds,
    )
    encoding, decoding = (Spread.of(seconds[each]).median for each in ("encode", "decode"))
    energy = sum(float(np.sum(np.square(each, dtype=np.float64))) for each in tensors.values())
    error = sum(
        float(np.sum(np.square(np.asarray(restored[key]).reshape(each.shape) - each, dtype=float)))
        for key, each in tensors.items()
    )
    return Speed(
        coder, name, len(coded), dense / len(coded), error / energy,
        dense / encoding, dense / decoding,
    )  # fmt: skip


def nncodec_encode(tensors: dict[str, npt.NDArray[np.float32]], **options: object) -> bytes:
    """Return the bitstream of NNCodec with these options."""
    from nncodec import nn

    with tempfile.TemporaryDirectory() as folder:
        arguments = {"results": folder, "verbose": False, **options}
        return bytes(
            nn.encode({name: np.array(each) for name, each in tensors.items()}, arguments)
        )


def nncodec_decode(coded: bytes) -> dict[str, npt.NDArray[np.float32]]:
    """Return what NNCodec restores."""
    from nncodec import nn

    return dict(nn.decode(bytearray(coded), {"verbose": False}))


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables."""
    made = parser(__doc__, rounds=NUM_ROUNDS)
    made.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(PUBLISHED))
    options = made.parse_args(arguments)
    if unknown := set(options.networks) - PUBLISHED.keys():
        made.error(f"no network is called {', '.join(sorted(unknown))}")
    sizes = list(published_sizes(options.networks or tuple(PUBLISHED)))
    if squeezenet.FILE.is_file():
        sizes.append(real_size())
    else:
        note(f"{squeezenet.FILE}: no such file; SqueezeNet v1.0 is left out")
    measured = list(speeds(options.rounds))
    emit(
        options,
        {"sizes": sizes, "speeds": measured},
        table(
            "Sizes of coded weights",
            ("network", "dense, B", "coded, B", "to ideal Huffman", "ratio", "paper's"),
            map(_size_cells, sizes),
        ),
        table(
            "Speed of coding, MB of 32-bit floats a second",
            ("coder", "weights", "coded, B", "ratio", "error", "encode", "decode"),
            map(_speed_cells, measured),
            num_names=2,
        ),
    )
    return 0


def _size_cells(size: Size) -> tuple[str, ...]:
    return (
        size.network,
        f"{size.dense:,}",
        f"{size.coded:,}",
        f"{100 * (size.coded / size.ideal - 1):+.2f} %",
        f"{size.dense / size.coded:.1f}",
        "" if size.published is None else f"{size.published:g}",
    )


def _speed_cells(speed: Speed) -> tuple[str, ...]:
    return (
        speed.coder,
        speed.weights,
        f"{speed.coded:,}",
        f"{speed.ratio:.1f}",
        f"{speed.error:.1e}",
        f"{speed.encode / 1e6:.0f}",
        f"{speed.decode / 1e6:.0f}",
    )


if __name__ == "__main__":
    sys.exit(main())
