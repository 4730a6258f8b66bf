"""Policies that trade time for memory, on training steps at budgets of their peaks.

The networks are those of the zoo at batch 8, with batch statistics where the published networks
have them. Their training steps are made by `stated_training.py`: sizes and multiply-adds are real,
and what a backward step reads is what differentiation needs. Weights are not counted. Every
program is simulated, the simulation checked, and the program shown to compute the same values.

Claims: `joint` is never slower than `greedy-chains`; nobody is wrong; with `--strict` also that
every quick policy decides within 2 s.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import onnx
from rich.table import Table

from arenite.planner.budget import Budget
from arenite.planner.costs import PRESETS, Costs
from arenite.planner.equivalence import check_same_values
from arenite.planner.errors import (
    MissingDependencyError,
    UnmetBudgetError,
    UnsupportedProgramError,
)
from arenite.planner.policy import Policy
from arenite.planner.program import Program
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.planner.timing import check_timeline, simulate
from arenite.strategies.fit import POLICIES
from harness import bench, emit, note, parser, table
from stated_training import training_step
from zoo import mobilenet_v2, resnet50, unet, vgg16

NETWORKS: dict[str, tuple[Callable[[], onnx.ModelProto], bool]] = {
    "mobilenet-v2": (mobilenet_v2.network, True),
    "resnet50": (resnet50.network, True),
    "unet": (unet.network, False),
    "vgg16": (vgg16.network, False),
}
"""By name: what makes it, and whether it normalises by the statistics of the batch."""

BUDGETS = ("75%", "50%", "30%", "least")
_QUICK_S = 2.0


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one training step at one budget.

    Attributes:
        network: The network's name.
        machine: Whose speeds.
        budget: The budget.
        policy: The policy's name.
        of_peak: What it comes to, as a part of the peak without a policy.
        extra_time: Predicted extra time, as a part; None where the budget is not met.
        moved: Bytes that cross the link outwards.
        decide_s: Processor seconds to decide.
    """

    network: str
    machine: str
    budget: str
    policy: str
    of_peak: float | None
    extra_time: float | None
    moved: int
    decide_s: float


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and return whether the claims hold."""
    options = _options(arguments)
    machines = {name: PRESETS[name] for name in options.machine or PRESETS}
    policies = [each for each in POLICIES if not options.policy or each.name in options.policy]
    rows: list[Row] = []
    for name in options.network or NETWORKS:
        make, batch_statistics = NETWORKS[name]
        program = training_step(make(), options.batch, batch_statistics=batch_statistics)
        note(f"{name}: {len(program.steps)} steps, peak {peak_of(program):,} B")
        for machine, costs in machines.items():
            rows += _rows(name, program, machine, costs, policies)
    emit(options, rows, *_tables(rows))
    return 0 if _holds(rows, strict=options.strict) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--network", action="append", choices=list(NETWORKS))
    options.add_argument("--policy", action="append", choices=[each.name for each in POLICIES])
    options.add_argument("--machine", action="append", choices=list(PRESETS))
    options.add_argument("--batch", type=int, default=8)
    options.add_argument("--strict", action="store_true", help="also hold the time to decide")
    return options.parse_args(arguments)


def _rows(
    network: str, program: Program, machine: str, costs: Costs, policies: Sequence[Policy]
) -> Iterator[Row]:
    before = simulate(program, costs)
    for policy in policies:
        note(f"{network}, {machine}: {policy.name}")
        for text in BUDGETS:
            budget = Budget() if text == "least" else Budget.parse(text)
            begin = time.process_time()
            try:
                made = policy(program, budget, costs)
            except UnmetBudgetError as error:
                took = time.process_time() - begin
                share = error.reached / peak_of(program)
                yield Row(network, machine, text, policy.name, share, None, 0, took)
                continue
            except (UnsupportedProgramError, MissingDependencyError) as error:
                note(str(error))
                break
            took = time.process_time() - begin
            timeline = simulate(made, costs)
            check_timeline(made, costs, timeline)
            check_same_values(program, made)
            yield Row(
                network,
                machine,
                text,
                policy.name,
                peak_of(made) / peak_of(program),
                timeline.seconds / before.seconds - 1,
                timeline.bytes_out,
                took,
            )


def _tables(rows: Sequence[Row]) -> Iterator[Table]:
    for network, machine in dict.fromkeys((row.network, row.machine) for row in rows):
        its = [row for row in rows if (row.network, row.machine) == (network, machine)]
        lines = []
        for policy in dict.fromkeys(row.policy for row in its):
            cells = {row.budget: row for row in its if row.policy == policy}
            slowest = max(row.decide_s for row in cells.values())
            lines.append((policy, *(_cell(cells[budget]) for budget in BUDGETS), f"{slowest:.2f}"))
        yield table(
            f"{network}, {machine}: extra time; at the least also the peak in % of none",
            ("policy", *BUDGETS, "seconds"),
            lines,
        )


def _cell(row: Row) -> str:
    if row.extra_time is None:
        return "-"
    extra = f"+{100 * max(0.0, row.extra_time):.2f} %"
    return f"{100 * (row.of_peak or 0):.1f}: {extra}" if row.budget == "least" else extra


def _holds(rows: Sequence[Row], *, strict: bool) -> bool:
    times = {(row.network, row.machine, row.budget, row.policy): row.extra_time for row in rows}
    held = True
    for (network, machine, budget, policy), chains in times.items():
        joint = times.get((network, machine, budget, "joint"))
        if policy != "greedy-chains" or budget == "least" or chains is None or joint is None:
            continue
        if joint > chains + 1e-3:
            note(f"{network}, {machine}, {budget}: joint is slower than greedy-chains")
            held = False
    if strict:
        quick = {policy.name for policy in POLICIES if policy.quick}
        for row in rows:
            if row.policy in quick and row.decide_s > _QUICK_S:
                note(f"{row.network}: {row.policy} takes {row.decide_s:.1f} s to decide")
                held = False
    return held


if __name__ == "__main__":
    raise SystemExit(main())
