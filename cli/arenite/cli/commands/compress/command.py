"""`arenite compress`: prune, share weights, code."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from arenite.cli.commands.compress.scan_file import ScanFile
from arenite.cli.commands.compress.stages import (
    int8_of,
    judge_of,
    judged_stages,
    narrowing_of,
    scan_layers,
    with_densities,
    with_mean_bits,
)
from arenite.cli.commands.compress.tables import (
    compression_as_json,
    layers_table,
    narrowing_rows,
    sensitivity_table,
    summary_rows,
)
from arenite.cli.console.output import check_destination, emit_json, progress, results
from arenite.cli.options.shared import (
    dim_option,
    huffman_option,
    json_option,
    seed_option,
    shape_option,
    weight_budget_option,
)
from arenite.cli.planning.programs import SUFFIX, code_of, write_program
from arenite.cli.planning.search import search
from arenite.cli.render.tables import facts
from arenite.cli.render.text import name as styled_name
from arenite.planner.errors import MissingDependencyError, OutputError
from arenite.planner.files import model_digest
from arenite.planner.importers import Shapes
from arenite.runtime.compiler import Compiled as CompiledProgram
from arenite.runtime.compiler import compile_model
from arenite.runtime.lowering.streaming import WeightBudget
from arenite.runtime.program.assembly import Code
from arenite.strategies import find

if TYPE_CHECKING:
    from arenite.compression.onnx_model import OnnxModel
    from arenite.compression.pipeline import Compressed, LayerRecipe
    from arenite.compression.sensitivity import Sensitivity


class ShareType(click.ParamType[float]):
    """A share: above 0, at most 1."""

    name = "share"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share; `30%` is 0.3."""
        text = str(value)
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = -1.0
        if not 0 < share <= 1:
            self.fail(f"{value!r} is not above 0 and at most 1", param, ctx)
        return share


class LayerType(click.ParamType[tuple[str, float | None, int | None]]):
    """An exception for a layer: `NAME:density=0.1,bits=5`."""

    name = "layer"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float | None, int | None]:
        """Return the name, the density and the bits."""
        if isinstance(value, tuple):
            return value
        layer, colon, rest = str(value).rpartition(":")
        density: float | None = None
        bits: int | None = None
        for part in rest.split(","):
            key, _, number = part.partition("=")
            if key == "density":
                density = ShareType().convert(number, param, ctx)
            elif key == "bits":
                bits = int(click.IntRange(0, 8)(number, param, ctx))
            else:
                colon = ""
        if not (layer and colon):
            self.fail(f"{value!r} is not NAME:density=D,bits=N", param, ctx)
        return layer, density, bits


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="OUT.onnx|OUT.arena",
    help="A model with the new weights, or a program with coded ones.",
)  # fmt: skip
@click.option(
    "--channels", type=ShareType(), metavar="D",
    help="Output channels that stay, of convolutions where they can go; the arena shrinks too.",
)  # fmt: skip
@click.option(
    "--sensitivity", type=click.FloatRange(0, min_open=True), metavar="LOSS",
    help="Prune each layer as far as it alone loses so much accuracy, or output without labels.",
)  # fmt: skip
@click.option(
    "--scan", "scan_path", type=click.Path(path_type=Path), metavar="FILE",
    help="Keep here what --sensitivity finds, and go on from it.",
)  # fmt: skip
@click.option("--density", type=ShareType(), metavar="D", help="Weights that stay, of each layer.")
@click.option(
    "--deviation", type=click.FloatRange(0, 10), metavar="X",
    help="Weights stay beyond so many standard deviations of their layer.",
)  # fmt: skip
@click.option(
    "--budget", type=ShareType(), metavar="D", help="Weights that stay, of all layers together."
)
@click.option(
    "--bits", type=click.IntRange(0, 8), default=8, show_default=True,
    help="Of a shared weight; 0 leaves the values as they are.",
)  # fmt: skip
@click.option(
    "--conv-bits", type=click.IntRange(0, 8), help="The same, for convolutions.  [default: --bits]"
)
@click.option(
    "--fc-bits", type=click.IntRange(0, 8), help="The same, for matrices.  [default: --bits]"
)
@click.option(
    "--mean-bits", type=click.FloatRange(1, 8), metavar="N",
    help="Choose the bits of each layer so that they lose the least for this mean.",
)  # fmt: skip
@click.option(
    "--layer", "exceptions", type=LayerType(), multiple=True, metavar="NAME:density=D,bits=N",
    help="An exception for one layer; repeatable.",
)  # fmt: skip
@click.option(
    "--start", type=click.Choice(("linear", "density", "forgy")), default="linear",
    show_default=True, help="Where k-means begins.",
)  # fmt: skip
@click.option("--half", is_flag=True, help="Let codebooks have 16-bit floats.")
@click.option(
    "--evaluate", "dataset_path", type=click.Path(path_type=Path), metavar="DATASET.npz",
    help="Inputs by name, samples along the first axis, and `labels`.  [default: random inputs]",
)  # fmt: skip
@click.option(
    "--int8", "with_int8", is_flag=True,
    help="Show what ONNX Runtime's quantiser makes of the model beside it.",
)  # fmt: skip
@weight_budget_option
@huffman_option
@dim_option
@shape_option
@seed_option
@json_option
def compress(
    model: Path,
    output: Path,
    channels: float | None,
    sensitivity: float | None,
    scan_path: Path | None,
    density: float | None,
    deviation: float | None,
    budget: float | None,
    bits: int,
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
    dims: Mapping[str, int],
    shapes: Shapes,
    seed: int | None,
    as_json: bool,
) -> None:
    """Compress the weights of the ONNX file MODEL, and say what each layer came to.

    Weights share the few values of a codebook; with --density, --deviation or --budget the
    smallest become 0 first. Nothing is trained: look at what the evaluation says.
    """
    _check_usage(output, (density, deviation, budget, sensitivity), weight_budget)
    _check_packages()
    from arenite.compression.onnx_model import OnnxModel
    from arenite.compression.pipeline import LayerRecipe, Recipe
    from arenite.compression.pipeline import compress as run_pipeline
    from arenite.compression.share import Start

    check_destination(output, model, *(() if dataset_path is None else (dataset_path,)))
    scan_file = None
    if scan_path is not None:
        if sensitivity is None:
            raise click.UsageError("--scan needs --sensitivity")
        check_destination(scan_path, model, output)
        samples = f"random, seed {seed or 0}" if dataset_path is None else dataset_path.name
        channels_left = "" if channels is None else f", {channels:g} of the channels"
        scan_file = ScanFile(scan_path, model_digest(model), samples + channels_left)
    recipe = Recipe(
        density, deviation, budget,
        bits if conv_bits is None else conv_bits, bits if fc_bits is None else fc_bits,
        start=Start(start), half=half, seed=seed or 0,
        layers={name: LayerRecipe(share, wanted) for name, share, wanted in exceptions},
    )  # fmt: skip
    original = OnnxModel(model)
    source, narrowing = original, None
    if channels is not None:
        source, narrowed = original.narrowed(channels)
        narrowing = narrowing_of(model, original, source, narrowed, dims, shapes)
    _check_layers(source, recipe.layers)
    with _status() as report:
        judge = judge_of(original, dataset_path, recipe.seed)
        scanned: list[Sensitivity] = []
        if sensitivity is not None:
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
        qualities = judged_stages(judge, original, source, compressed)
        int8 = int8_of(original, judge) if with_int8 else None
    code = code_of(huffman=huffman)
    program = _write(output, model, source, compressed, dims, shapes, weight_budget, code)
    if as_json:
        said = compression_as_json(model, output, compressed, qualities, scanned, narrowing)
        emit_json(said | {"int8": None if int8 is None else asdict(int8)})
        return
    console = results()
    console.print(styled_name(model.name, "bold"), soft_wrap=True)
    if scanned:
        console.print(sensitivity_table(scanned))
        console.print()
    console.print(layers_table(compressed))
    console.print()
    rows = summary_rows(compressed, qualities, int8, dataset_path, program, output)
    console.print(facts([*narrowing_rows(narrowing), *rows]))


def _check_usage(
    output: Path, shares: Sequence[float | None], weight_budget: WeightBudget | None
) -> None:
    if sum(each is not None for each in shares) > 1:
        raise click.UsageError(
            "--density, --deviation, --budget and --sensitivity exclude each other"
        )
    if output.suffix not in (".onnx", SUFFIX):
        raise click.BadParameter(
            f"{output.name!r} ends in neither .onnx nor {SUFFIX}", param_hint="--output"
        )
    if weight_budget is not None and output.suffix != SUFFIX:
        raise click.UsageError(f"--weight-budget is for a program; let --output end in {SUFFIX}")


def _check_packages() -> None:
    for package, extra in (("onnx", "onnx"), ("zstandard", "compression")):
        if find_spec(package) is None:
            raise MissingDependencyError(package, extra, "compressing a model")


def _check_layers(source: "OnnxModel", exceptions: "Mapping[str, LayerRecipe]") -> None:
    known = [layer.name for layer in source.layers]
    for name in exceptions:
        if name not in known:
            raise click.BadParameter(
                f"there is no layer {name!r}; there are {', '.join(known)}", param_hint="--layer"
            )


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    console = progress()
    with console.status("") as status:
        yield status.update


def _write(
    output: Path,
    model: Path,
    source: "OnnxModel",
    compressed: "Compressed",
    dims: Mapping[str, int],
    shapes: Shapes,
    weight_budget: WeightBudget | None,
    code: Code,
) -> CompiledProgram | None:
    from arenite.compression.onnx_model import write_onnx

    written = source.with_weights(compressed.shared)
    try:
        if output.suffix != SUFFIX:
            write_onnx(output, written)
            return None
        with tempfile.TemporaryDirectory(prefix="arenite-compress-") as folder:
            twin = Path(folder) / model.name
            write_onnx(twin, written)
            compiled = compile_model(twin, dims=dims, shapes=shapes, weight_budget=weight_budget)
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror}", path=output) from error
    outcome = search(find("best"), compiled.source.problem)
    write_program(output, compiled, outcome, code=code)
    return compiled
