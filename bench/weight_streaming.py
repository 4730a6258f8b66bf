"""Weights streamed into the arena: memory and latency against weights that stay.

    python bench/weight_streaming.py [--json] [--rounds N] [--runner FILE] [CASE ...]

Cases: `vgg16`, weights random, pruned and shared as Deep Compression published; `resnet50`, 30 %
of the weights kept, 5 bits; `mobilenet-v2`, all kept, 6 bits; `mobilenet-v2-bytes`, the same
without Huffman codes; `resnet50-dense` and
`mobilenet-v2-dense`, as they are, streamed from the mapped file. Each variant, a budget of
resident weights, runs in `arenite-run`, one thread that computes, interleaved with the others and
with ONNX Runtime, which runs the same weights in a Python process. Each budget runs twice: with a
lane, a thread that fills a second window meanwhile and takes a second core, and in turn, on one.
Latency is wall time, relative to our own run with all weights resident. Exits with 1 if outputs
differ from ONNX Runtime's by more than 1e-4 of the largest.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from rich.table import Table

from arenite.compression import CompressionRecipe, Layer, LayerRecipe, OnnxModel, compress
from arenite.pipeline.base.placing import place
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.programs import code_of, random_inputs, write_program
from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime.rewrites import Loading, WeightBudget
from arenite.strategies import find
from harness import Spread, bench, emit, interleaved, paired_ratios, parser, table
from harness.contest import ONNXRUNTIME, Raced, run_engines
from harness.runner import Ran, build_runner, run_program
from published_networks import PUBLISHED
from zoo import NETWORKS, vgg16

TOLERANCE = 1e-4
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
    recipe: Callable[[Sequence[Layer]], CompressionRecipe] | None
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
        window: Bytes of the windows that are live together.
        arena: Bytes of the arena.
        peak_rss: Median of the processes, in bytes.
        latency: Ratio to our run with all weights resident, over the rounds.
        error: Largest difference from ONNX Runtime's outputs, relative to the largest.
    """

    case: str
    variant: str
    file: int
    resident: int | None
    window: int | None
    arena: int | None
    peak_rss: int
    latency: Spread
    error: float


def published_recipe(layers: Sequence[Layer]) -> CompressionRecipe:
    """Return the densities and bits of VGG-16 in the paper."""
    exceptions = {
        layer.name: LayerRecipe(stated.kept / 100, stated.bits)
        for layer, stated in zip(layers, PUBLISHED["VGG-16"].layers, strict=True)
    }
    return CompressionRecipe(layers=exceptions)


CASES = {
    "vgg16": Case(vgg16.network, published_recipe, (2,)),
    "resnet50": Case(
        NETWORKS["resnet50"],
        lambda _: CompressionRecipe(density=0.3, convolution_bits=5, product_bits=5),
        (50, 25, 10),
    ),
    "mobilenet-v2": Case(
        NETWORKS["mobilenet-v2"],
        lambda _: CompressionRecipe(convolution_bits=6, product_bits=6),
        (50, 25, 10),
    ),
    "mobilenet-v2-bytes": Case(
        NETWORKS["mobilenet-v2"],
        lambda _: CompressionRecipe(convolution_bits=6, product_bits=6),
        (50, 25, 10),
        huffman=False,
    ),
    "resnet50-dense": Case(NETWORKS["resnet50"], None, (50, 25, 10)),
    "mobilenet-v2-dense": Case(NETWORKS["mobilenet-v2"], None, (50, 25, 10)),
}


@dataclass(frozen=True)
class Variant:
    """A program file.

    Attributes:
        name: The budget.
        file: The program.
        resident: Bytes of weights that stay, uncoded.
        window: Bytes of the windows that are live together.
        arena: Bytes of the arena.
        outputs: Where a run leaves its first output.
    """

    name: str
    file: Path
    resident: int
    window: int
    arena: int
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
        arrays = list(random_inputs(compile_model(model).program, 0).values())
        raw = folder / "input.raw"
        arrays[0].tofile(raw)

        def ours(variant: Variant) -> Ran:
            return run_program(runner, variant.file, [raw], NUM_RUNS, variant.outputs)

        def theirs() -> Ran:
            files = {ONNXRUNTIME: model}
            raced = run_engines("onnx", files, arrays, folder, 1, seconds=SECONDS)[ONNXRUNTIME]
            expected.append(raced)
            return Ran(raced.latencies_ms[0], raced.peaks_bytes[0])

        expected: list[Raced] = []
        runs: dict[str, Callable[[], Ran]] = {each.name: partial(ours, each) for each in variants}
        ran = interleaved({**runs, ONNXRUNTIME: theirs}, rounds)
        outputs = np.concatenate([each.reshape(-1) for each in expected[0].outputs])
        base = [each.median_ms for each in ran[variants[0].name]]

        def latency(of: str) -> Spread:
            return paired_ratios([each.median_ms for each in ran[of]], base)

        def peak(of: str) -> int:
            return int(Spread.of(each.peak_rss_bytes for each in ran[of]).median)

        for variant in variants:
            found = np.fromfile(variant.outputs, np.float32)
            yield Row(
                name, variant.name, variant.file.stat().st_size, variant.resident, variant.window,
                variant.arena, peak(variant.name), latency(variant.name),
                float(np.abs(found - outputs).max() / np.abs(outputs).max()),
            )  # fmt: skip
        yield Row(
            name, ONNXRUNTIME, model.stat().st_size, None, None, None, peak(ONNXRUNTIME),
            latency(ONNXRUNTIME), 0.0,
        )  # fmt: skip


def variants_of(case: Case, model: Path, folder: Path) -> Iterator[Variant]:
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
            name_of(budget), file,
            total if streaming is None else streaming.resident,
            0 if streaming is None else streaming.at_once * streaming.window,
            outcome.plan.height, folder / f"{number}.out",
        )  # fmt: skip


def name_of(budget: WeightBudget | None) -> str:
    """Return what a variant is called."""
    if budget is None:
        return "all resident"
    return f"{budget.amount:g} % resident, {budget.loading}"


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    cells = []
    for row in rows:
        sizes = (row.file, row.resident, row.window, row.arena, row.peak_rss)
        in_mb = ("-" if size is None else f"{size / 1e6:.1f}" for size in sizes)
        cells.append((row.case, row.variant, *in_mb, row.latency.text(".2f")))
    return table(
        "Streamed weights",
        ("case", "variant", "file", "resident", "windows", "arena", "peak", "latency (range)"),
        cells,
        num_names=2,
        caption="sizes in MB (10^6 B)",
    )


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if an output is wrong."""
    options = parser(__doc__, rounds=3)
    options.add_argument("cases", nargs="*", choices=[[], *CASES], metavar="CASE")
    options.add_argument("--runner", type=Path, help="arenite-run (default: built here)")
    parsed = options.parse_args(arguments)
    runner = parsed.runner or build_runner()
    rows = [
        row
        for name in parsed.cases or CASES
        for row in rows_of(name, CASES[name], runner, parsed.rounds)
    ]
    emit(parsed, rows, shown(rows))
    return int(any(row.error > TOLERANCE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
