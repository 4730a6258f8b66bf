"""Weights: streamed into the arena, and coded."""

import heapq
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.compression import CompressionRecipe, Layer, LayerRecipe, compress, pack, unpack
from arenite.compression.coding import code, decode
from arenite.compression.onnx_model import OnnxModel
from arenite.pipeline.base.placing import place
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.programs import code_of, random_inputs, write_program
from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime.rewrites import Loading, WeightBudget
from arenite.strategies import find
from bench import deep_compression as squeezenet
from bench.deep_compression import PUBLISHED
from bench.harness.contest import TABLE, Asked, Row, chosen, contest, note, option
from bench.harness.engines import ONNXRUNTIME, Raced, run_engines
from bench.harness.measuring import Spread, interleaved, paired_ratios, timed
from bench.harness.runner import Ran, build_runner, run_program
from bench.zoo import NETWORKS
from bench.zoo.classic import vgg16

Floats = NDArray[np.float32]
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Case:
    """A model and its budgets of resident weights in per cent.

    Attributes:
        network: Builds the model.
        recipe: Compression by the layers; None leaves the weights as they are.
        budgets: Per cent of the weights that may be resident.
        huffman: Whether coded weights are Huffman-coded.
    """

    network: Callable[[], onnx.ModelProto]
    recipe: Callable[[Sequence[Layer]], CompressionRecipe] | None = None
    budgets: tuple[float, ...] = (50, 25, 10)
    huffman: bool = True


def _published(layers: Sequence[Layer]) -> CompressionRecipe:
    """Return the densities and bits of VGG-16 in the paper."""
    return CompressionRecipe(layers={
        layer.name: LayerRecipe(stated.kept / 100, stated.bits)
        for layer, stated in zip(layers, PUBLISHED["VGG-16"].layers, strict=True)
    })  # fmt: skip


def _six_bits(_: Sequence[Layer]) -> CompressionRecipe:
    return CompressionRecipe(convolution_bits=6, product_bits=6)


CASES = {
    "vgg16": Case(vgg16, _published, (2,)),
    "resnet50": Case(
        NETWORKS["resnet50"],
        lambda _: CompressionRecipe(density=0.3, convolution_bits=5, product_bits=5),
    ),
    "mobilenet-v2": Case(NETWORKS["mobilenet-v2"], _six_bits),
    "mobilenet-v2-bytes": Case(NETWORKS["mobilenet-v2"], _six_bits, huffman=False),
    "resnet50-dense": Case(NETWORKS["resnet50"]),
    "mobilenet-v2-dense": Case(NETWORKS["mobilenet-v2"]),
}


@contest(
    {"Streamed weights, sizes in MB (10^6 B)": {
        "case": "", "variant": "", "file": ".1f", "resident": ".1f", "windows": ".1f",
        "arena": ".1f", "peak": ".1f", "latency": ".2f",
    }},
    rounds=3,
    options=[
        option("cases", nargs="*", metavar="CASE", help=", ".join(CASES)),
        option("--runner", type=Path, help="arenite-run (default: built here)"),
    ],
)  # fmt: skip
def weight_streaming(asked: Asked) -> Iterator[Row]:
    """Memory and latency with weights streamed into the arena, against resident weights.

    `vgg16` has weights pruned and shared as Deep Compression published; `resnet50` keeps 30 % of
    the weights, 5 bits; `mobilenet-v2` all, 6 bits; `-bytes` is without Huffman codes, `-dense` as
    it is, streamed from the mapped file. Each variant runs in `arenite-run`, one compute thread,
    interleaved with the others and with ONNX Runtime on the same weights. Each budget runs twice:
    with a lane, a thread that fills a second window meanwhile, and in turn. Latency is relative to
    our own run with all weights resident; outputs are ONNX Runtime's to 1e-4 of the largest.
    """
    names = chosen(asked.given.cases, CASES, "case")
    runner = asked.given.runner or build_runner()
    for name in names:
        yield from _streamed(name, CASES[name], runner, asked)


@dataclass(frozen=True, slots=True)
class Variant:
    """A program: bytes of resident weights, of live windows and of the arena."""

    name: str
    file: Path
    resident: int
    window: int
    arena: int
    outputs: Path


def _streamed(name: str, case: Case, runner: Path, asked: Asked) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        model = folder / "model.onnx"
        onnx.save(case.network(), model)
        if case.recipe is not None:
            source = OnnxModel(model)
            compressed = compress(source.layers, case.recipe(source.layers))
            onnx.save(source.with_weights(compressed.shared), model)
            del source, compressed
        variants = list(_variants(case, model, folder))
        arrays = list(random_inputs(compile_model(model).program, 0).values())
        raw = folder / "input.raw"
        arrays[0].tofile(raw)
        expected: list[Raced] = []

        def ours(variant: Variant) -> Ran:
            return run_program(runner, variant.file, [raw], 15, variant.outputs)

        def theirs() -> Ran:
            files = {ONNXRUNTIME: model}
            raced = run_engines("onnx", files, arrays, folder, 1, seconds=2.0)[ONNXRUNTIME]
            expected.append(raced)
            return Ran(raced.latencies_ms[0], raced.peaks_bytes[0])

        runs: dict[str, Callable[[], Ran]] = {each.name: partial(ours, each) for each in variants}
        ran = interleaved({**runs, ONNXRUNTIME: theirs}, asked.rounds)
        outputs = np.concatenate([each.reshape(-1) for each in expected[0].outputs])
        times = {key: [each.median_ms for each in its] for key, its in ran.items()}

        def measured(variant: str) -> Row:
            return {
                "case": name, "variant": variant,
                "peak": Spread.of(each.peak_rss_bytes for each in ran[variant]).median / 1e6,
                "latency": paired_ratios(times[variant], times[variants[0].name]),
            }  # fmt: skip

        for each in variants:
            found = np.fromfile(each.outputs, np.float32)
            error = float(np.abs(found - outputs).max() / np.abs(outputs).max())
            asked.require(error <= TOLERANCE, f"{name}, {each.name}: outputs as ONNX Runtime's")
            yield {
                **measured(each.name), "file": each.file.stat().st_size / 1e6,
                "resident": each.resident / 1e6, "windows": each.window / 1e6,
                "arena": each.arena / 1e6,
            }  # fmt: skip
        yield {**measured(ONNXRUNTIME), "file": model.stat().st_size / 1e6}


def _variants(case: Case, model: Path, folder: Path) -> Iterator[Variant]:
    """Yield a program without a budget, then two for each: with a lane and in turn."""
    budgets = [
        WeightBudget(percent, is_percent=True, loading=loading)
        for percent in case.budgets
        for loading in Loading
    ]
    for number, budget in enumerate([None, *budgets]):
        compiled = compile_model(model, Reading(weight_budget=budget))
        file = folder / f"{number}.arena"
        outcome = place(find("best"), compiled.source.problem)
        code = None if case.recipe is None else code_of(huffman=case.huffman)
        write_program(file, compiled, outcome, code=code)
        streaming = compiled.streaming
        total = sum(each.nbytes for each in compiled.program.constants.values())
        yield Variant(
            "all resident" if budget is None else f"{budget.amount:g} %, {budget.loading}", file,
            total if streaming is None else streaming.resident,
            0 if streaming is None else streaming.at_once * streaming.window,
            outcome.plan.height, folder / f"{number}.out",
        )  # fmt: skip


_SIZES, _SPEEDS = "Sizes of coded weights", "Speed of coding, MB of 32-bit floats a second"


@contest(
    {
        _SIZES: {"network": "", "dense, B": "", "coded, B": "", "to ideal Huffman": "+.2%",
                 "ratio": ".1f", "the paper's": "g"},
        _SPEEDS: {"coder": "", "weights": "", "coded, B": "", "ratio": ".1f", "error": ".1e",
                  "encode": ".0f", "decode": ".0f"},
    },
    rounds=3,
    options=[option("networks", nargs="*", metavar="NETWORK", help=", ".join(PUBLISHED))],
)  # fmt: skip
def weight_coding(asked: Asked) -> Iterator[Row]:
    """Sizes and speed of coded weights: published networks, a real one, and NNCodec.

    Weights have the shapes, densities and bits that Deep Compression published, with normal random
    values; beside them an ideal Huffman coder, which spends whole bits on symbols and none on
    tables, in the better layout of each layer. SqueezeNet v1.0 is its authors' file in
    `../shared`: the whole container, each bit checked. NNCodec (ISO/IEC 15938-17) codes the same
    weights, where installed.
    """
    for name in chosen(asked.given.networks, PUBLISHED, "network"):
        dense = coded = ideal = 0
        for seed, layer in enumerate(PUBLISHED[name].layers):
            weights = layer.weights(seed)
            found = code(weights)
            assert found is not None
            assert decode(bytes(found), weights.shape).tobytes() == weights.tobytes()
            dense += weights.nbytes
            coded += found.size
            ideal += ideal_size(weights)
        yield _size(name, dense, coded, ideal) | {"the paper's": PUBLISHED[name].rate}
    if squeezenet.FILE.is_file():
        tensors = squeezenet.read()
        packed = pack(tensors)
        restored = unpack(packed)
        assert all(restored[name].tobytes() == each.tobytes() for name, each in tensors.items())
        ideal = sum(ideal_size(w) if w.ndim > 1 else w.nbytes for w in tensors.values())
        dense = sum(each.nbytes for each in tensors.values())
        yield _size("SqueezeNet v1.0, the authors' real weights", dense, len(packed), ideal)
    else:
        note(f"{squeezenet.FILE}: no such file; SqueezeNet v1.0 is left out")
    yield from _speeds(asked.rounds)


def _size(name: str, dense: int, coded: int, ideal: int) -> Row:
    return {
        TABLE: _SIZES, "network": name, "dense, B": dense, "coded, B": coded,
        "to ideal Huffman": coded / ideal - 1, "ratio": dense / coded,
    }  # fmt: skip


def huffman_bits(symbols: NDArray[np.integer]) -> int:
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


def ideal_size(weights: Floats) -> int:
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
        for bits in (4, 5, 8):
            span = 1 << bits
            num_fillers = int((gaps // span).sum())
            all_gaps = np.concatenate((gaps % span, np.full(num_fillers, span - 1)))
            fillers = np.full(num_fillers, int(np.searchsorted(values, 0)))
            symbols = np.concatenate((kept, fillers))
            candidates.append(huffman_bits(symbols) + huffman_bits(all_gaps))
    return 4 * values.size + -(-min(candidates) // 8)


def _speeds(rounds: int) -> Iterator[Row]:
    (layer,) = (each for each in PUBLISHED["VGG-16"].layers if each.name == "fc8")
    sets = {f"VGG-16 {layer.name}": {layer.name: layer.weights(0)}}
    if squeezenet.FILE.is_file():
        sets["SqueezeNet v1.0"] = squeezenet.read()
    for name, tensors in sets.items():
        yield _speed("arenite", name, tensors, pack, unpack, rounds)
        if find_spec("nncodec") is None:
            note("nncodec is not installed: left out")
            continue
        for step in (-38, -32):
            encode = partial(_nncodec_encode, qp=step)
            yield _speed(f"NNCodec, step {step}", name, tensors, encode, _nncodec_decode, rounds)


def _speed(
    coder: str,
    name: str,
    tensors: dict[str, Floats],
    encode: Callable[[dict[str, Floats]], bytes],
    decode: Callable[[bytes], dict[str, Any]],
    rounds: int,
) -> Row:
    dense = sum(each.nbytes for each in tensors.values())
    coded = encode(tensors)
    restored = decode(coded)
    seconds = interleaved(
        {
            "encode": lambda: timed(lambda: encode(tensors))[0],
            "decode": lambda: timed(lambda: decode(coded))[0],
        },
        rounds,
    )
    energy = sum(float(np.sum(np.square(each, dtype=np.float64))) for each in tensors.values())
    error = sum(
        float(np.sum(np.square(np.asarray(restored[key]).reshape(each.shape) - each, dtype=float)))
        for key, each in tensors.items()
    )
    return {
        TABLE: _SPEEDS, "coder": coder, "weights": name, "coded, B": len(coded),
        "ratio": dense / len(coded), "error": error / energy,
        **{way: dense / Spread.of(its).median / 1e6 for way, its in seconds.items()},
    }  # fmt: skip


def _nncodec_encode(tensors: dict[str, Floats], **options: object) -> bytes:
    from nncodec import nn

    with tempfile.TemporaryDirectory() as folder:
        arguments = {"results": folder, "verbose": False, **options}
        copies = {name: np.array(each) for name, each in tensors.items()}
        return bytes(nn.encode(copies, arguments))


def _nncodec_decode(coded: bytes) -> dict[str, Floats]:
    from nncodec import nn

    return dict(nn.decode(bytearray(coded), {"verbose": False}))
