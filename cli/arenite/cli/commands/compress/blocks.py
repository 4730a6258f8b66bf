"""`arenite compress --block`: products with weights in blocks of 4 or 8 bits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from arenite.cli.commands.compress.stages import judging_of
from arenite.pipeline.base import Reading
from arenite.planner.errors import about_file


def store_blocks(
    model: Path, output: Path, bits: int, length: int, dataset: Path | None, seed: int,
    sizes: Reading,
) -> tuple[Mapping[str, Any], list[tuple[str, str]]]:  # fmt: skip
    """Write a model with weights in blocks; return what to say as JSON and as lines."""
    from arenite.compression import BLOCK_BITS, BLOCK_LENGTHS, OnnxModel, with_blocks, write_onnx

    if output.suffix != ".onnx":
        raise click.UsageError("--block writes an .onnx; `arenite build` makes a program of it")
    if bits not in BLOCK_BITS or length not in BLOCK_LENGTHS:
        raise click.UsageError(
            f"--bits {bits} --block {length} is unsupported; --bits 4 or 8, and --block 16, 32, "
            "64, 128 or 256"
        )
    source = OnnxModel(model)
    with about_file(model):
        changed, layers = with_blocks(source, bits, length)
        judging = judging_of(source, dataset, seed, sizes)
        quality = None if judging.judge is None else judging.judge.judge(changed)
    write_onnx(output, changed)
    before = 4 * sum(each.num_weights for each in layers)
    after = sum(each.num_bytes for each in layers)
    error = None if quality is None else quality.error
    said = {
        "model": model.name,
        "output": str(output),
        "bits": bits,
        "block": length,
        "layers": [
            {"name": each.name, "weights": each.num_weights, "bytes": each.num_bytes,
             "error": each.error}
            for each in layers
        ],
        "error": error,
    }  # fmt: skip
    what = "the data set" if dataset is not None else "random inputs"
    cost = f"not evaluated: {judging.why_not}" if error is None else f"{error:.1e} on {what}"
    lines = [
        ("weights", f"{before:,} B in {len(layers)} layers"),
        ("blocks", f"{after:,} B with scales: {before / after:.1f} times smaller"),
        ("output error", cost),
        ("written", str(output)),
    ]
    return said, lines
