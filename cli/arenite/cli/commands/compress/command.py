"""`arenite compress`: prune, share weights, code."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from arenite.cli.commands.compress.blocks import store_blocks
from arenite.cli.commands.compress.scan_file import ScanFile
from arenite.cli.commands.compress.stages import (
    int8_of,
    judged_stages,
    judging_of,
    narrowing_of,
    scan_layers,
    twin_of,
    with_densities,
    with_mean_bits,
)
from arenite.cli.commands.compress.tables import (
    Sizes,
    compression_as_json,
    int8_as_json,
    layers_table,
    narrowing_rows,
    sensitivity_table,
    summary_rows,
)
from arenite.cli.console.results import Results
from arenite.cli.console.streams import progress
from arenite.cli.options.common import json_option
from arenite.cli.options.model import huffman_option, sizes_options, weight_budget_option
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.types import Parsed, number_type
from arenite.cli.render.facts import facts
from arenite.cli.render.facts import name as styled_name
from arenite.pipeline.base import Reading
from arenite.pipeline.making import SUFFIX, build_model, code_of
from arenite.pipeline.targets import Compiled as CompiledProgram
from arenite.planner.errors import MissingDependencyError, about_file
from arenite.planner.files import model_digest, read_model, write_atomically
from arenite.runtime.program import Code
from arenite.runtime.rewrites import WeightBudget

if TYPE_CHECKING:
    import onnx

    from arenite.compression import LayerRecipe, OnnxModel, Sensitivity


def _share_of(text: str) -> float:
    """Return a share above 0 and at most 1, such as `30%`."""
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise ValueError(f"{text!r} is not a share such as 0.3 or 30%")
    return share


def _exception(text: str) -> tuple[str, float | None, int | None]:
    """Return name, density and bits of an exception for a layer: `NAME:density=0.1,bits=5`."""
    layer, colon, rest = text.rpartition(":")
    density: float | None = None
    bits: int | None = None
    for part in rest.split(","):
        key, _, number = part.partition("=")
        if key == "density":
            density = _share_of(number)
        elif key == "bits":
            bits = _BITS.parse(number)
        else:
            colon = ""
    if not (layer and colon):
        raise ValueError(f"{text!r} is not NAME:density=D,bits=N")
    return layer, density, bits


_BITS = number_type(0, 8)
_SHARE = Parsed("share", _share_of)


@click.command(
    cls=SectionedCommand,
    sections={
        "Pruning": ("deviation", "total_density", "sensitivity", "scan_path"),
        "Sharing weights": (
            "block",
            "conv_bits",
            "fc_bits",
            "mean_bits",
            "exceptions",
            "start",
            "half",
            "seed",
        ),
        "Program file (OUT.arena)": ("huffman", "weight_budget", "dims", "shapes", "values"),
    },
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="OUT.onnx|OUT.arena",
    help="Model or program file to write.",
)  # fmt: skip
@click.option(
    "--channels", type=_SHARE, metavar="D",
    help="Keep this share of the channels of convolutions; shrinks the arena too.",
)  # fmt: skip
@click.option(
    "--sensitivity", type=click.FloatRange(0, min_open=True), metavar="LOSS",
    help="Prune each layer until it alone costs this much accuracy (or output error, without "
    "labels).",
)  # fmt: skip
@click.option(
    "--scan", "scan_path", type=click.Path(path_type=Path), metavar="FILE",
    help="Save the progress of --sensitivity here, and resume from it.",
)  # fmt: skip
@click.option(
    "--density",
    type=_SHARE,
    metavar="D",
    help="Keep this share of each layer's weights, the largest.",
)
@click.option(
    "--deviation", type=click.FloatRange(0, 10), metavar="X",
    help="Keep weights above X standard deviations of their layer.",
)  # fmt: skip
@click.option(
    "--total-density",
    type=_SHARE,
    metavar="D",
    help="Keep this share of the weights of all layers together.",
)  # fmt: skip
@click.option(
    "--bits", type=_BITS, default=8, show_default=True, metavar="N",
    help="Bits per weight, 1 to 8; 0 leaves the values unchanged.",
)  # fmt: skip
@click.option(
    "--block", type=number_type(16, 256), metavar="N",
    help="Store MatMul and Gemm in blocks of N weights with a scale each, as MatMulNBits of "
    "--bits 4 or 8, instead of sharing values.",
)  # fmt: skip
@click.option(
    "--conv-bits",
    type=_BITS,
    metavar="N",
    help="Bits per weight of convolutions.  [default: --bits]",
)  # fmt: skip
@click.option(
    "--fc-bits",
    type=_BITS,
    metavar="N",
    help="Bits per weight of fully connected layers.  [default: --bits]",
)  # fmt: skip
@click.option(
    "--mean-bits", type=click.FloatRange(1, 8), metavar="N",
    help="Choose the bits of each layer for the least loss at this average.",
)  # fmt: skip
@click.option(
    "--layer", "exceptions", type=Parsed("layer", _exception), multiple=True,
    metavar="NAME:density=D,bits=N", help="Settings for one layer. Repeatable.",
)  # fmt: skip
@click.option(
    "--start", type=click.Choice(("linear", "density", "forgy")), default="linear",
    show_default=True, help="Starting point of k-means.",
)  # fmt: skip
@click.option("--half", is_flag=True, help="Store codebooks as 16-bit floats.")
@click.option(
    "--evaluate", "dataset_path", type=click.Path(path_type=Path), metavar="DATASET.npz",
    help="Evaluate on this data: inputs by name, samples along the first axis, and 'labels'.  "
    "[default: random inputs]",
)  # fmt: skip
@click.option(
    "--int8", "with_int8", is_flag=True,
    help="Also compare with the 8-bit quantisation of ONNX Runtime.",
)  # fmt: skip
@weight_budget_option
@huffman_option
@sizes_options
@click.option(
    "--seed", type=number_type(), metavar="N", help="Seed of k-means and of random inputs."
)
@json_option
def compress(
    sizes: Reading,
    model: Path,
    output: Path,
    channels: float | None,
    sensitivity: float | None,
    scan_path: Path | None,
    density: float | None,
    deviation: float | None,
    total_density: float | None,
    bits: int,
    block: int | None,
    conv_bits: int | None,
    fc_bits: int | None,
    mean_bits: float | None,
    exceptions: Sequence[tuple[str, float | None, int | None]],
    start: str,
    half: bool,
    dataset_path: Path | None,
    with_int8: bool,
    weight_budget: WeightBudget | None,
    huffman: bool,
    seed: int | None,
    as_json: bool,
) -> None:
    """Compress the weights of the ONNX file MODEL.

    Writes an .onnx with the new weights, or an .arena that holds them compressed. The weights
    of a layer share the few values of a codebook; pruning sets the smallest to zero first.
    Nothing is retrained, so check the evaluation.
    """
    _check_usage(output, (density, deviation, total_density, sensitivity), weight_budget)
    _check_packages()
    from arenite.compression import CompressionRecipe, LayerRecipe, OnnxModel, Start, write_onnx
    from arenite.compression import compress as run_pipeline

    results = Results(as_json=as_json)
    if block is not None:
        shares = (channels, sensitivity, density, deviation, total_density, mean_bits)
        if any(each is not None for each in (*shares, conv_bits, fc_bits)) or exceptions:
            raise click.UsageError("--block takes --bits alone; it prunes and shares nothing")
        results.reserve(output, sources=(model, dataset_path))
        said, lines = store_blocks(model, output, bits, block, dataset_path, seed or 0, sizes)
        results.show(said, lambda console: console.print(facts(lines)))
        return
    reading = replace(sizes, weight_budget=weight_budget)
    results.reserve(output, scan_path, sources=(model, dataset_path))
    scan_file = None
    if scan_path is not None:
        if sensitivity is None:
            raise click.UsageError("--scan requires --sensitivity")
        samples = f"random, seed {seed or 0}" if dataset_path is None else dataset_path.name
        channels_left = "" if channels is None else f", {channels:g} of the channels"
        data = samples + channels_left + _sizes_text(sizes)
        scan_file = ScanFile(scan_path, model_digest(model), data)
    recipe = CompressionRecipe(
        density, deviation, total_density,
        bits if conv_bits is None else conv_bits, bits if fc_bits is None else fc_bits,
        start=Start(start), half=half, seed=seed or 0,
        layers={name: LayerRecipe(share, wanted) for name, share, wanted in exceptions},
    )  # fmt: skip
    original = OnnxModel(model)
    if output.suffix == SUFFIX or channels is not None:
        _check_sizes(model, original, sizes)
    source, narrowing = original, None
    if channels is not None:
        source, narrowed = original.narrowed(channels)
        narrowing = narrowing_of(model, original, source, narrowed, sizes)
    _check_layers(source, recipe.layers)
    with about_file(model), _status() as report:
        judging = judging_of(original, dataset_path, recipe.seed, reading)
        judge_of_int8 = judging.needed_for("--int8") if with_int8 else None
        scanned: list[Sensitivity] = []
        if sensitivity is not None:
            judge = judging.needed_for("--sensitivity")
            scanned = scan_layers(source, judge, scan_file, report)
            recipe = with_densities(recipe, scanned, sensitivity)
        if mean_bits is not None:
            report("choosing bits")
            recipe = with_mean_bits(recipe, source, mean_bits)
        compressed = run_pipeline(
            source.layers,
            recipe,
            lambda done, name: report(f"layer {done + 1} of {len(source.layers)}: {name}"),
        )
        report("evaluating")
        qualities = judged_stages(judging.judge, original, source, compressed)
        int8 = None if judge_of_int8 is None else int8_of(original, judge_of_int8)
    code = code_of(huffman=huffman)
    changed = source.with_weights(compressed.shared)
    program, grown = None, None
    if output.suffix == SUFFIX:
        program = _write_program(output, model, changed, reading, code)
    elif changed.ByteSize() > original.num_bytes == model.stat().st_size:
        grown = changed.ByteSize()
        write_atomically(output, read_model(model))
    else:
        write_onnx(output, changed)
    totals = Sizes(original.num_bytes, output.stat().st_size, source.num_other_bytes(), grown)

    def text(console: Console) -> None:
        console.print(styled_name(model.name, "bold"), soft_wrap=True)
        if scanned:
            console.print(sensitivity_table(scanned))
            console.print()
        console.print(layers_table(compressed))
        console.print()
        rows = summary_rows(
            compressed, qualities, int8, dataset_path, judging.why_not, program, output,
            totals,
        )  # fmt: skip
        console.print(facts([*narrowing_rows(narrowing), *rows]))

    said = compression_as_json(model, output, compressed, qualities, scanned, narrowing, totals)
    results.show(said | {"int8": int8_as_json(int8)}, text)


def _check_usage(
    output: Path, shares: Sequence[float | None], weight_budget: WeightBudget | None
) -> None:
    if sum(each is not None for each in shares) > 1:
        raise click.UsageError(
            "--density, --deviation, --total-density and --sensitivity exclude each other"
        )
    if output.suffix not in (".onnx", SUFFIX):
        raise click.BadParameter(
            f"{output.name!r} must end in .onnx or {SUFFIX}", param_hint="--output"
        )
    if weight_budget is not None and output.suffix != SUFFIX:
        raise click.UsageError(f"--weights is for a program file; end --output in {SUFFIX}")


def _check_sizes(model: Path, original: "OnnxModel", sizes: Reading) -> None:
    """Return if every size is known, so that no plan fails for it at the end of a long search."""
    from arenite.planner.importers.onnx import bind

    with about_file(model):
        bind(original.original().graph, sizes.fixed_dims, sizes.fixed_shapes)


def _sizes_text(reading: Reading) -> str:
    """Return the sizes and values that the user states, for a scan file to tell scans apart."""
    parts = [f"{name}={value}" for name, value in reading.dims.items()]
    parts += [f"{name}={'x'.join(map(str, shape))}" for name, shape in reading.shapes.items()]
    parts += [f"{name}={value}" for name, value in reading.values.items()]
    return "".join(f", {part}" for part in sorted(parts))


def _check_packages() -> None:
    for package, extra in (("onnx", "onnx"), ("zstandard", "compression")):
        if find_spec(package) is None:
            raise MissingDependencyError(package, extra, "compressing a model")


def _check_layers(source: "OnnxModel", exceptions: "Mapping[str, LayerRecipe]") -> None:
    known = [layer.name for layer in source.layers]
    for name in exceptions:
        if name not in known:
            raise click.BadParameter(
                f"there is no layer {name!r}; choose from {', '.join(known)}", param_hint="--layer"
            )


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    console = progress()
    with console.status("") as status:
        yield status.update


def _write_program(
    output: Path, model: Path, changed: "onnx.ModelProto", reading: Reading, code: Code
) -> CompiledProgram:
    with twin_of(model, changed) as twin:
        built = build_model(twin, reading)
    built.write(output, code)
    return built.compiled
