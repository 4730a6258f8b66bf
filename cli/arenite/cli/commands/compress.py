"""`arenite compress`: prune, share weights, code."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import RenderableType

from arenite.cli.options import (
    dim_option,
    json_option,
    seed_option,
    shape_option,
    weight_budget_option,
)
from arenite.cli.output import OutputError, check_destination, emit_json, progress, results
from arenite.cli.programs import SUFFIX, write_program
from arenite.cli.render.numbers import both, percent
from arenite.cli.render.tables import facts, listing
from arenite.cli.render.text import name as styled_name
from arenite.cli.render.weights import weights_rows
from arenite.cli.search import search
from arenite.planner.errors import MissingDependencyError
from arenite.planner.importers import Shapes
from arenite.runtime.compiler import Compiled as CompiledProgram
from arenite.runtime.compiler import compile_model
from arenite.runtime.lowering.streaming import WeightBudget
from arenite.strategies import find

if TYPE_CHECKING:
    from arenite.compression.evaluate import Quality
    from arenite.compression.onnx_model import OnnxModel
    from arenite.compression.pipeline import Compressed, LayerRecipe, LayerResult, Recipe

_NUM_RANDOM_SAMPLES = 8


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
@weight_budget_option
@dim_option
@shape_option
@seed_option
@json_option
def compress(
    model: Path,
    output: Path,
    density: float | None,
    deviation: float | None,
    budget: float | None,
    bits: int,
    conv_bits: int | None,
    fc_bits: int | None,
    exceptions: Sequence[tuple[str, float | None, int | None]],
    start: str,
    half: bool,
    dataset_path: Path | None,
    weight_budget: WeightBudget | None,
    dims: Mapping[str, int],
    shapes: Shapes,
    seed: int | None,
    as_json: bool,
) -> None:
    """Compress the weights of the ONNX file MODEL, and say what each layer came to.

    Weights share the few values of a codebook; with --density, --deviation or --budget the
    smallest become 0 first. Nothing is trained: look at what the evaluation says.
    """
    _check_usage(output, (density, deviation, budget), weight_budget)
    _check_packages()
    from arenite.compression.onnx_model import OnnxModel
    from arenite.compression.pipeline import LayerRecipe, Recipe
    from arenite.compression.pipeline import compress as run_pipeline
    from arenite.compression.share import Start

    check_destination(output, model, *(() if dataset_path is None else (dataset_path,)))
    recipe = Recipe(
        density, deviation, budget,
        bits if conv_bits is None else conv_bits, bits if fc_bits is None else fc_bits,
        start=Start(start), half=half, seed=seed or 0,
        layers={name: LayerRecipe(share, wanted) for name, share, wanted in exceptions},
    )  # fmt: skip
    source = OnnxModel(model)
    _check_layers(source, recipe.layers)
    with _status() as report:
        compressed = run_pipeline(
            source.layers,
            recipe,
            lambda done, name: report(f"layer {done + 1} of {len(source.layers)}: {name}"),
        )
        report("evaluating")
        qualities = _evaluate(source, compressed, dataset_path, seed or 0)
    program = _write(output, model, source, compressed, dims, shapes, weight_budget)
    if as_json:
        emit_json(_as_json(model, output, compressed, qualities))
        return
    console = results()
    console.print(styled_name(model.name, "bold"), soft_wrap=True)
    console.print(_layers_table(compressed))
    console.print()
    console.print(facts(_summary(compressed, qualities, recipe, dataset_path, program, output)))


def _check_usage(
    output: Path, shares: Sequence[float | None], weight_budget: WeightBudget | None
) -> None:
    if sum(each is not None for each in shares) > 1:
        raise click.UsageError("--density, --deviation and --budget exclude each other")
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


def _evaluate(
    source: "OnnxModel", compressed: "Compressed", path: Path | None, seed: int
) -> "list[tuple[str, Quality]]":
    """Return how the model does after each stage; nothing if it cannot be told."""
    from arenite.compression.evaluate import DatasetError, Judge, random_dataset, read_dataset

    original = source.original()
    try:
        dataset = (
            random_dataset(original, _NUM_RANDOM_SAMPLES, seed)
            if path is None
            else read_dataset(path)
        )
    except DatasetError:
        if path is not None:
            raise
        return []
    judge = Judge(original, dataset)
    stages = [("original", original)]
    if compressed.pruned:
        stages.append(("pruned", source.with_weights(compressed.pruned)))
    stages.append(("shared", source.with_weights(compressed.shared)))
    return [(stage, judge.judge(each)) for stage, each in stages]


def _write(
    output: Path,
    model: Path,
    source: "OnnxModel",
    compressed: "Compressed",
    dims: Mapping[str, int],
    shapes: Shapes,
    weight_budget: WeightBudget | None,
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
        raise OutputError(output, f"cannot be written: {error.strerror}") from error
    outcome = search(find("best"), compiled.source.problem)
    write_program(output, compiled, outcome, with_codes=True)
    return compiled


def _as_json(
    model: Path,
    output: Path,
    compressed: "Compressed",
    qualities: "Sequence[tuple[str, Quality]]",
) -> dict[str, object]:
    return {
        "model": str(model),
        "output": str(output),
        "file_bytes": output.stat().st_size,
        "dense_bytes": sum(4 * each.num_weights for each in compressed.results),
        "coded_bytes": sum(each.coded_size for each in compressed.results),
        "layers": [
            {
                "name": each.name,
                "kind": each.kind.value,
                "shape": list(each.shape),
                "weights": each.num_weights,
                "kept": each.num_kept,
                "bits": each.bits,
                "layout": None if each.code is None else each.code.layout.name.lower(),
                "gap_bits": None if each.code is None else each.code.gap_bits,
                "index_bits": _index_bits(each),
                "position_bits": _position_bits(each),
                "coded_bytes": each.coded_size,
                "error": each.error,
            }
            for each in compressed.results
        ],
        "stages": [
            {
                "stage": stage,
                "accuracy": quality.accuracy,
                "error": quality.error,
                "agreement": quality.agreement,
            }
            for stage, quality in qualities
        ],
    }


def _layers_table(compressed: "Compressed") -> RenderableType:
    return listing(
        (
            "layer", "shape", "weights>", "kept>", "bits>", "coded>", "positions>", "layout",
            "bytes>", "rate>", "error>",
        ),
        [
            (
                styled_name(each.name),
                "x".join(map(str, each.shape)),
                f"{each.num_weights:,}",
                percent(each.num_kept / each.num_weights),
                str(each.bits or 32),
                "" if each.code is None else f"{_index_bits(each):.1f}",
                "" if each.code is None else f"{_position_bits(each):.1f}",
                "" if each.code is None else each.code.layout.name.lower(),
                f"{each.coded_size:,}",
                percent(each.coded_size / (4 * each.num_weights)),
                f"{each.error:.1e}",
            )
            for each in compressed.results
        ],
    )  # fmt: skip


def _index_bits(result: "LayerResult") -> float | None:
    """Return the Huffman-coded bits of a weight that is not left out."""
    code = result.code
    return (
        None if code is None or not code.num_indices else 8 * len(code.indices) / code.num_indices
    )


def _position_bits(result: "LayerResult") -> float | None:
    """Return the coded bits of the position of a weight that is not left out."""
    code = result.code
    if code is None or not code.num_indices:
        return None
    return 8 * len(code.positions) / code.num_indices


def _summary(
    compressed: "Compressed",
    qualities: "Sequence[tuple[str, Quality]]",
    recipe: "Recipe",
    dataset: Path | None,
    program: CompiledProgram | None,
    output: Path,
) -> list[tuple[str, RenderableType]]:
    dense = sum(4 * each.num_weights for each in compressed.results)
    coded = sum(each.coded_size for each in compressed.results)
    kept = sum(each.num_kept for each in compressed.results) / (dense // 4)
    rows: list[tuple[str, RenderableType]] = [
        ("weights", f"{both(dense)} in {len(compressed.results)} layers, {percent(kept)} kept"),
        ("coded", f"{both(coded)}: {dense / coded:.1f} times less"),
    ]
    on = "on random inputs" if dataset is None else f"on {dataset.name}"
    for stage, quality in qualities:
        if quality.accuracy is not None:
            text = f"{percent(quality.accuracy)} right"
        elif stage == "original":
            continue
        else:
            text = f"output error {quality.error:.1e}"
            if quality.agreement is not None:
                text += f", same class in {percent(quality.agreement)}"
        rows.append((stage, f"{text} {on}"))
    if recipe.layers or any(each.num_kept < each.num_weights for each in compressed.results):
        rows.append(("note", "pruned without training; `arenite.compression.training` retrains"))
    if program is not None:
        rows += weights_rows(program)
    rows.append(("written", f"{output}, {both(output.stat().st_size)}"))
    return rows
