"""How little memory networks take when parts of them run in bands of rows.

    python bench/bands.py [--json] [MODEL ...]

For each model: the arena of the whole program; the least that bands reach without a further
multiplication; and the least in which some rows are made again, in strips, with at most a tenth
more multiplications. Graph input and output lie inside, alignment and scratch of the kernels are
counted. Further the turns of both, and how long the search took. Each plan was verified. Beside
them the figures of others, as published or as their tools print them: Vela's is of its NPU.
Without arguments the models are those of `bench/zoo` and of `../shared`, where present.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from arenite.cli.planning.costs import DESKTOP, FLOAT, MachineCosts
from arenite.cli.planning.fitting import Fitting
from harness import bench, emit, note, parser, table, timed
from harness.inputs import each_of, reading_of, shared_onnx, shared_tflite, zoo_file

ZOO = (
    "mobilenet-v1-0.25-96", "mobilenet-v1", "mobilenet-v2", "unet", "resnet50", "densenet121",
    "inception-v3",
)  # fmt: skip
TFLITE = (
    "tf2_mobilenet_v2_1.0_224_ptq", "mobilenet_v1_0.5_160_quant", "person_detect", "vww_96_int8",
    "pretrainedResnet_quant", "kws_ref_model", "deeplabv3_mnv2_dm05_pascal_quant",
)  # fmt: skip

VELA: Mapping[str, int] = {
    "tf2_mobilenet_v2_1.0_224_ptq": 361_984,
    "mobilenet_v1_0.5_160_quant": 156_160,
    "person_detect": 30_720,
    "vww_96_int8": 49_152,
    "pretrainedResnet_quant": 35_840,
    "kws_ref_model": 15_974,
}
"""Arena in bytes of Arm's ethos-u-vela 5.2 with `--optimise Size`, for its NPU."""

PUBLISHED = (
    "msf-CNN as published, MobileNet v2 0.35 144, graph input and output left to the caller: "
    "21,288 B at 1.30 times the multiply-adds, 15,340 B at 1.38, 7,887 B at 1.68. "
    "MCUNetV2 as published, MobileNet v2: 172 kB."
)
"""Of other networks or by another count, so not in the table."""

ASSUMED = MachineCosts("costs of a core of a desktop, assumed", {FLOAT: DESKTOP})
"""The same programs on every machine that this runs on."""


@dataclass(frozen=True)
class Row:
    """One model.

    Attributes:
        model: Its name.
        whole: Bytes of the arena of the whole program.
        least: The same of the least that makes nothing again.
        lower_bound: Bytes that no plan of that program goes below.
        steps: Of the whole program.
        turns: Steps that run in the least one, each band of one counted.
        in_strips: Bytes of the least of all; the same where nothing made again goes lower.
        macs_ratio: Its multiply-adds over those of the whole program.
        turns_in_strips: Its turns.
        seconds: Of the search: regions, and plans of all programs of the frontier.
        vela: Arena of Vela, where it is known.
    """

    model: str
    whole: int
    least: int
    lower_bound: int
    steps: int
    turns: int
    in_strips: int
    macs_ratio: float
    turns_in_strips: int
    seconds: float
    vela: int | None


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of the zoo written to a folder."""
    for name in ZOO:
        yield zoo_file(name, folder)
    yield from shared_tflite(TFLITE)
    yield from shared_onnx()


def fitted(model: Path) -> Row:
    """Return the figures of a model."""
    reading_s, fitting = timed(lambda: Fitting(model, reading_of(model), ASSUMED))
    search_s, fits = timed(fitting.frontier)
    least = [fit for fit in fits if fit.multiply_adds_ratio == 1][-1]
    in_strips = fits[-1]
    row = Row(
        model=model.stem,
        whole=fits[0].height,
        least=least.height,
        lower_bound=least.banded.plan.lower_bound,
        steps=len(fitting.program.steps),
        turns=least.banded.num_turns,
        in_strips=in_strips.height,
        macs_ratio=in_strips.multiply_adds_ratio,
        turns_in_strips=in_strips.banded.num_turns,
        seconds=search_s,
        vela=VELA.get(model.stem),
    )
    note(
        f"{row.model}: {row.whole:,} -> {row.least:,} -> {row.in_strips:,} B, "
        f"read in {reading_s:.1f} s"
    )
    return row


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Arenas in bands of rows, in bytes",
        (
            "model", "whole", "least", "of whole", "bound", "steps", "turns", "in strips",
            "multiply-adds", "turns", "search, s", "Vela 5.2, NPU",
        ),
        (
            (
                row.model,
                f"{row.whole:,}",
                f"{row.least:,}",
                f"{100 * row.least / row.whole:.1f} %" if row.whole else "",
                f"{row.lower_bound:,}",
                f"{row.steps:,}",
                f"{row.turns:,}",
                f"{row.in_strips:,}",
                f"{row.macs_ratio:.3f}",
                f"{row.turns_in_strips:,}",
                f"{row.seconds:.1f}",
                "" if row.vela is None else f"{row.vela:,}",
            )
            for row in rows
        ),
    )  # fmt: skip


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Search and print."""
    options = parser(__doc__, models="the zoo, and models of ../shared")
    parsed = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(each_of(parsed.models, default_models(Path(folder)), fitted))
    emit(parsed, rows, shown(rows), PUBLISHED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
