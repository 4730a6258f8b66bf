"""Weights streamed into the arena: memory and latency against weights that stay.

    python bench/weight_streaming.py [--json] [--rounds N] [--runner FILE] [CASE ...]

Cases: `vgg16`, weights random, pruned and shared as Deep Compression published; `resnet50`, 30 %
of the weights kept, 5 bits; `mobilenet-v2`, all kept, 6 bits; `mobilenet-v2-bytes`, the same
without Huffman codes; `resnet50-dense` and
`mobilenet-v2-dense`, as they are, streamed from the mapped file. Each variant, a budget of
resident weights, runs in `arenite-run`, the variants turn by turn, one thread; ONNX Runtime runs
the same weights in a Python process in the same rounds. Latency is relative to our own run with
all weights resident. Exits with 1 if outputs differ from ONNX Runtime's by more than 1e-4 of the
largest.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from arenite.compression.onnx_model import Layer, OnnxModel
from arenite.compression.pipeline import LayerRecipe, Recipe, compress
from rich.console import Console
from rich.table import Table

from arenite.cli.commands.bench.rounds import Contest, measure, outputs_of
from arenite.cli.planning.programs import code_of, random_inputs, write_program
from arenite.cli.planning.search import search
from arenite.runtime.compiler import compile_model
from arenite.runtime.lowering.streaming import WeightBudget
from arenite.strategies import find
from process_memory import build_runner
from published_networks import PUBLISHED
from zoo import NETWORKS, vgg16

TOLERANCE = 1e-4
ONNXRUNTIME = "onnxruntime"
SECONDS = 2.0
NUM_RUNS = 15


@dataclass(frozen=True)
class Case:
    """A model and the budgets it runs with.

    Attributes:
        network: Makes the model.
        recipe: Of its compression, by its layers; None to leave the weights as they are.
        budgets: Per cent of the weights that may be resident.
        huffman: Whether coded weights are Huffman-coded.
    """

    network: Callable[[], onnx.ModelProto]
    recipe: Callable[[Sequence[Layer]], Recipe] | None
    budgets: tuple[float, ...]
    huffman: bool = True


@dataclass(frozen=True)
class Row:
    """One variant.

    Attributes:
        case: Which model.
        variant: The budget, or the other runtime.
        file: Bytes of the program or the model.
        resident: Bytes of weights that stay, uncoded.
        window: Bytes of the largest window.
        arena: Bytes of the arena.
        peak_rss: Bytes of the process.
        latency: Median ratio to our run with all weights resident.
        error: Largest difference from ONNX Runtime's outputs, relative to the largest.
    """

    case: str
    variant: str
    file: int
    resident: int | None
    window: int | None
    arena: int | None
    peak_rss: int
    latency: float
    error: float


def published_recipe(layers: Sequence[Layer]) -> Recipe:
    """Return the densities and bits of VGG-16 in the paper."""
    exceptions = {
        layer.name: LayerRecipe(stated.kept / 100, stated.bits)
        for layer, stated in zip(layers, PUBLISHED["VGG-16"].layers, strict=True)
    }
    return Recipe(layers=exceptions)


CASES = {
    "vgg16": Case(vgg16.network, published_recipe, (2,)),
    "resnet50": Case(
        NETWORKS["resnet50"],
        lambda _: Recipe(density=0.3, convolution_bits=5, product_bits=5),
        (50, 25, 10),
    ),
    "mobilenet-v2": Case(
        NETWORKS["mobilenet-v2"],
        lambda _: Recipe(convolution_bits=6, product_bits=6),
        (50, 25, 10),
    ),
    "mobilenet-v2-bytes": Case(
        NETWORKS["mobilenet-v2"],
        lambda _: Recipe(convolution_bits=6, product_bits=6),
        (50, 25, 10),
        huffman=False,
    ),
    "resnet50-dense": Case(NETWORKS["resnet50"], None, (50, 25, 10)),
    "mobilenet-v2-dense": Case(NETWORKS["mobilenet-v2"], None, (50, 25, 10)),
}


@dataclass
class Variant:
    """A program file and what its processes measured."""

    name: str
    file: Path
    resident: int
    window: int
    arena: int
    latencies: list[float]
    peaks: list[int]
    outputs: Path


def rows_of(name: str, case: Case, runner: Path, rounds: int) -> Iterator[Row]:
    """Yield what was measured of a case."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        model = folder / "model.onnx"
        onnx.save(case.network(), model)
        if case.recipe is not None:
            source = OnnxModel(model)
            compressed = compress(source.layers, case.recipe(source.layers))
            onnx.save(source.with_weights(compressed.shared), model)
            del source, compressed
        variants = list(variants_of(case, model, folder))
        inputs = folder / "inputs.npz"
        arrays = list(random_inputs(compile_model(model).lowered, 0).values())
        np.savez(inputs, *arrays)
        arrays[0].tofile(folder / "input.raw")
        contest = Contest("onnx", {ONNXRUNTIME: model}, inputs, 1, SECONDS)
        theirs = []
        for number in range(rounds):
            theirs += measure(contest, 1, lambda _number, _engine: None)[0].samples
            for variant in variants[number % len(variants) :] + variants[: number % len(variants)]:
                run(runner, variant, folder / "input.raw")
        with np.load(outputs_of(contest, ONNXRUNTIME)) as stored:
            expected = np.concatenate([stored[key].reshape(-1) for key in stored.files])
        base = variants[0].latencies
        for variant in variants:
            found = np.fromfile(variant.outputs, np.float32)
            yield Row(
                name, variant.name, variant.file.stat().st_size, variant.resident, variant.window,
                variant.arena, int(statistics.median(variant.peaks)),
                paired(variant.latencies, base),
                float(np.abs(found - expected).max() / np.abs(expected).max()),
            )  # fmt: skip
        yield Row(
            name, ONNXRUNTIME, model.stat().st_size, None, None, None,
            int(statistics.median(each.peak_rss_bytes for each in theirs)),
            paired([each.median_ns / 1e6 for each in theirs], base), 0.0,
        )  # fmt: skip


def variants_of(case: Case, model: Path, folder: Path) -> Iterator[Variant]:
    """Yield a program for each budget, that without one first."""
    for percent in (100, *case.budgets):
        budget = None if percent == 100 else WeightBudget(percent, is_percent=True)
        compiled = compile_model(model, weight_budget=budget)
        file = folder / f"{percent}.arena"
        outcome = search(find("best"), compiled.source.problem, watched=False)
        code = None if case.recipe is None else code_of(huffman=case.huffman)
        write_program(file, compiled, outcome, code=code)
        streaming = compiled.streaming
        total = sum(each.nbytes for each in compiled.lowered.constants.values())
        yield Variant(
            f"{percent:g} % resident", file,
            total if streaming is None else streaming.resident,
            0 if streaming is None else streaming.window,
            outcome.plan.height, [], [], folder / f"{percent}.out",
        )  # fmt: skip


def run(runner: Path, variant: Variant, raw: Path) -> None:
    """Run a variant in a process of its own and keep what it says."""
    command: list[str | Path] = [runner, variant.file, "--runs", str(NUM_RUNS), "--input", raw]
    command += ["--output", variant.outputs]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    latency = re.search(r"^time +median ([\d.]+) ms", done.stdout, re.MULTILINE)
    memory = re.search(r"^memory +(\d+) KiB", done.stdout, re.MULTILINE)
    assert latency is not None
    assert memory is not None
    variant.latencies.append(float(latency[1]))
    variant.peaks.append(int(memory[1]) * 1024)


def paired(values: Sequence[float], base: Sequence[float]) -> float:
    """Return the median over the rounds of the ratio."""
    return statistics.median(a / b for a, b in zip(values, base, strict=True))


def table(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    found = Table("case", "variant", "file", "resident", "window", "arena", "peak", "latency")
    for row in rows:
        cells = (row.file, row.resident, row.window, row.arena, row.peak_rss)
        found.add_row(
            row.case, row.variant,
            *("-" if cell is None else f"{cell / 1e6:.1f}" for cell in cells),
            f"{row.latency:.2f}",
        )  # fmt: skip
    found.caption = "sizes in MB (10^6 B)"
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if an output is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], metavar="CASE")
    parser.add_argument("--runner", type=Path, help="arenite-run (default: built here)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    runner = options.runner or build_runner()
    rows = [
        row
        for name in options.cases or CASES
        for row in rows_of(name, CASES[name], runner, options.rounds)
    ]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        Console(width=140).print(table(rows))
    return int(any(row.error > TOLERANCE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
