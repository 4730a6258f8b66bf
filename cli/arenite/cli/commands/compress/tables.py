"""A compression as JSON and as tables."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType

from arenite.cli.commands.compress.stages import Int8, Narrowing
from arenite.cli.render.facts import listing, weights_rows
from arenite.cli.render.facts import name as styled_name
from arenite.pipeline.base import both, percent, plural
from arenite.pipeline.targets import Compiled as CompiledProgram

if TYPE_CHECKING:
    from arenite.compression import Compressed, LayerResult, Quality, Sensitivity


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes before and after.

    Attributes:
        model: The model's, with its external data.
        written: The file's that was written.
        others: Of constants that are no layer.
        grown: That the compressed model would take, if that is more than the model does and it
            was written as it is; else None.
    """

    model: int
    written: int
    others: int
    grown: int | None


def compression_as_json(
    model: Path,
    output: Path,
    compressed: "Compressed",
    qualities: "Sequence[tuple[str, Quality]]",
    scanned: "Sequence[Sensitivity]",
    narrowing: Narrowing | None,
    sizes: Sizes,
) -> dict[str, object]:
    """Return the document of `compress --json`."""
    return {
        "model": str(model),
        "output": str(output),
        "model_bytes": sizes.model,
        "file_bytes": sizes.written,
        "unchanged": sizes.grown is not None,
        "dense_bytes": sum(4 * each.num_weights for each in compressed.results),
        "coded_bytes": sum(each.coded_size for each in compressed.results),
        "channels": None if narrowing is None else asdict(narrowing),
        "sensitivity": {
            each.layer: {density: _finite(loss) for density, loss in each.losses.items()}
            for each in scanned
        },
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
        "stages": [{"stage": stage, **_quality_as_json(quality)} for stage, quality in qualities],
    }


def int8_as_json(int8: Int8 | None) -> dict[str, object] | None:
    """Return the part of `compress --json` on the other quantiser."""
    if int8 is None:
        return None
    return {"size": int8.size, "quality": _quality_as_json(int8.quality)}


def _quality_as_json(quality: "Quality") -> dict[str, object]:
    return {
        "accuracy": quality.accuracy,
        "error": _finite(quality.error),
        "agreement": quality.agreement,
    }


def _finite(number: float) -> float | None:
    """Return a number, None for one that JSON cannot write."""
    return number if isfinite(number) else None


def sensitivity_table(scanned: "Sequence[Sensitivity]") -> RenderableType:
    """Return the losses by layer and density."""
    densities = list(scanned[0].losses)
    return listing(
        ("loss at a density of", *(f"{percent(density)}>" for density in densities)),
        [
            (styled_name(each.layer), *(f"{each.losses[density]:.3f}" for density in densities))
            for each in scanned
        ],
    )


def narrowing_rows(narrowing: Narrowing | None) -> list[tuple[str, RenderableType]]:
    """Return the channels removed and the arena before and after; nothing if all stay."""
    if narrowing is None:
        return []
    return [
        (
            "channels",
            f"{narrowing.kept:,} of {narrowing.total:,} kept in "
            f"{plural(narrowing.layers, 'convolution')}",
        ),
        ("arena", f"{both(narrowing.before)} before, {both(narrowing.after)} after"),
    ]


def layers_table(compressed: "Compressed") -> RenderableType:
    """Return the result of each layer, in the columns of the paper."""
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


def _quality(quality: "Quality") -> str:
    if quality.accuracy is not None:
        return f"{percent(quality.accuracy)} correct"
    text = f"output error {quality.error:.1e}"
    if quality.agreement is not None:
        text += f", same class in {percent(quality.agreement)}"
    return text


def summary_rows(
    compressed: "Compressed",
    qualities: "Sequence[tuple[str, Quality]]",
    int8: Int8 | None,
    dataset: Path | None,
    why_not_judged: str,
    program: CompiledProgram | None,
    output: Path,
    sizes: Sizes,
) -> list[tuple[str, RenderableType]]:
    dense = sum(4 * each.num_weights for each in compressed.results)
    coded = sum(each.coded_size for each in compressed.results)
    kept = sum(each.num_kept for each in compressed.results) / (dense // 4)
    # The format of .onnx has no such code: there the weights only take few values.
    where = " in a program file, -o NAME.arena; here they stay 32-bit" if program is None else ""
    rows: list[tuple[str, RenderableType]] = [
        ("weights", f"{both(dense)} in {len(compressed.results)} layers, {percent(kept)} kept"),
        ("coded", f"{both(coded)}: {dense / coded:.1f} times smaller{where}"),
    ]
    if sizes.others:
        rows.append(("others", f"{both(sizes.others)} of other constants stay as they are"))
    on = "on random inputs" if dataset is None else f"on {dataset.name}"
    for stage, quality in qualities:
        if stage != "original" or quality.accuracy is not None:
            rows.append((stage, f"{_quality(quality)} {on}"))
    if why_not_judged:
        rows.append(
            ("note", f"not evaluated: {why_not_judged}; --evaluate DATASET.npz gives the inputs")
        )
    if int8 is not None:
        text = f"{_quality(int8.quality)} {on}, {both(int8.size)}, by ONNX Runtime's quantiser"
        rows.append(("int8", text))
    if compressed.pruned:
        rows.append(("note", "pruned without retraining; see `arenite.compression.retrain`"))
    if program is not None:
        rows += weights_rows(program)
    if sizes.grown is not None:
        rows.append(
            (
                "note",
                f"nothing saved: with its functions written out the model takes "
                f"{both(sizes.grown)}; it is written as it was",
            )
        )
    elif sizes.written > sizes.model:
        rows.append(("note", "larger than the model: a program holds its steps and plan too"))
    rows.append(("written", f"{output}, {both(sizes.written)}; {both(sizes.model)} before"))
    return rows
