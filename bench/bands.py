"""How little memory networks take when parts of them run in bands of rows.

    python bench/bands.py [--json] [--tigris PROGRAM] [MODEL ...]

For each model: the arena of the whole program; the least that bands reach without a further
multiplication; and the least in which some rows are made again, in strips, with at most a tenth
more multiplications. Graph input and output lie inside, alignment and scratch of the kernels are
counted. Further the turns of both, and how long the search took. Each plan was verified. A second
table has the same two arenas with graph input and output left to the caller, as msf-CNN counts,
and the figures of others, as published or as their tools print them: Vela's is of its NPU,
msf-CNN's of its network in bytes, so ours of floats is divided by four there. TiGrIS (the package
`tigris-ml`) is asked by `--tigris`: the least fast and slow memory together that its analyser
states.
Without arguments the models are those of `bench/zoo` and of `../shared`, where present.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.table import Table

from arenite.pipeline.making.costs import DESKTOP, FLOAT, MachineCosts
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.trading import one_lane
from arenite.pipeline.targets.compiling import rules, runs_by_rows
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.strategy import run
from arenite.planner.placement.verification import verify
from arenite.planner.programs.rules import Boundary
from arenite.planner.rewrites.candidate import Candidate
from arenite.strategies import StripsSearch, find
from harness import bench, emit, note, parser, table, timed
from harness.inputs import each_of, reading_of, shared_onnx, shared_tflite, zoo_files
from harness.tigris import tigris_bytes

ZOO = (
    "mobilenet-v2-0.35-144", "mobilenet-v1-0.25-96", "mobilenet-v1", "mobilenet-v2", "unet",
    "resnet50", "densenet121", "inception-v3",
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

MSF_CNN: Mapping[str, str] = {
    "mobilenet-v2-0.35-144": "21,288 at 1.30, 15,340 at 1.38, 7,887 at 1.68",
}
"""Bytes at times the multiply-adds, of Huang and Baccelli 2025: a chain of layers in bytes, graph
input and output left to the caller. Our network is made from its name."""

PUBLISHED = "MCUNetV2 as published, MobileNet v2: 172 kB."
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
        callers: Bytes of the least, graph input and output left to the caller.
        callers_in_strips: The same of the least of all.
        callers_ratio: Its multiply-adds over those of the whole program.
        vela: Arena of Vela, where it is known.
        tigris: Fast and slow memory of TiGrIS; 0 where it was not asked, or states none.
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
    callers: int
    callers_in_strips: int
    callers_ratio: float
    vela: int | None
    tigris: int = 0


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of the zoo written to a folder."""
    yield from zoo_files(ZOO, folder)
    yield from shared_tflite(TFLITE)
    yield from shared_onnx()


def least_of_callers(fitting: Fitting) -> tuple[Candidate, Candidate, float]:
    """Return the least where the caller holds graph input and output.

    The first makes no row again, the second may; the last is its multiply-adds over those of the
    whole program.
    """
    program = fitting.program
    ways = StripsSearch(
        program, replace(rules(), boundary=Boundary.EXCLUDE), one_lane(DESKTOP), placed,
        is_allowed=partial(runs_by_rows, program),
    )  # fmt: skip
    found = list(ways.frontier())
    work = ways.whole.multiply_adds
    plain = [banded for banded in found if banded.multiply_adds == work]
    return plain[-1], found[-1], found[-1].multiply_adds / work if work else 1.0


def placed(problem: Problem) -> Plan:
    """Return the best plan, verified."""
    plan = run(find("best"), problem)
    verify(problem, plan)
    return plan


def fitted(model: Path, tigris: str | None = None) -> Row:
    """Return the figures of a model; `tigris` is the program to ask, if any."""
    reading_s, fitting = timed(lambda: Fitting(model, reading_of(model), ASSUMED))
    search_s, fits = timed(fitting.frontier)
    least = [fit for fit in fits if fit.multiply_adds_ratio == 1][-1]
    in_strips = fits[-1]
    callers, callers_in_strips, callers_ratio = least_of_callers(fitting)
    row = Row(
        model=model.stem,
        whole=fits[0].height,
        least=least.height,
        lower_bound=least.plan.lower_bound,
        steps=len(fitting.program.steps),
        turns=least.num_turns,
        in_strips=in_strips.height,
        macs_ratio=in_strips.multiply_adds_ratio,
        turns_in_strips=in_strips.num_turns,
        seconds=search_s,
        callers=callers.height,
        callers_in_strips=callers_in_strips.height,
        callers_ratio=callers_ratio,
        tigris=tigris_bytes(tigris, model),
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
            "multiply-adds", "turns", "search, s",
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
            )
            for row in rows
        ),
    )  # fmt: skip


def beside_others(rows: Sequence[Row]) -> Table:
    """Return our figures beside those of others, for people."""
    return table(
        "Graph input and output left to the caller, and others, in bytes",
        (
            "model", "least", "in strips", "multiply-adds", "msf-CNN", "least, all inside",
            "Vela 5.2, NPU", "TiGrIS",
        ),
        (
            (
                row.model,
                _like(row.callers, row.model),
                _like(row.callers_in_strips, row.model),
                f"{row.callers_ratio:.3f}",
                MSF_CNN.get(row.model, ""),
                f"{row.in_strips:,}",
                "" if row.vela is None else f"{row.vela:,}",
                f"{row.tigris:,}" if row.tigris else "-",
            )
            for row in rows
        ),
    )  # fmt: skip


def _like(size: int, model: str) -> str:
    """Return bytes, those of a network of bytes where msf-CNN's figures are of one."""
    return f"{size // 4:,} (a quarter of {size:,})" if model in MSF_CNN else f"{size:,}"


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Search and print."""
    options = parser(__doc__, models="the zoo, and models of ../shared")
    options.add_argument("--tigris", metavar="PROGRAM", help="the program of TiGrIS")
    parsed = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(
            each_of(
                parsed.models, default_models(Path(folder)), partial(fitted, tigris=parsed.tigris)
            )
        )
    emit(parsed, rows, shown(rows), beside_others(rows), PUBLISHED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
