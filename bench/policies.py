"""Policies that trade time for memory, on training steps at budgets of their peaks.

The networks are those of the zoo at batch 8 with random weights, with batch statistics where the
published networks have batch norms. Their training steps are those of `arenite train`, read as
`arenite compare` reads them: standard ONNX, the states not counted. Every program is simulated,
the simulation checked, and the program shown to compute the same values, rounded where the policy
is one that rounds. Beside each policy stands what its paper claims, of networks, batches and
machines of its own.

Claims: `joint` is never slower than `greedy-chains`; nobody is wrong; at batch 8 by the speeds of
`pcie` neither is slower than stated in `LIMITS`; with `--strict` also that every quick policy
decides within 2 s for each 2,700 steps.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from arenite.planner.errors import (
    MissingDependencyError,
    UnmetBudgetError,
    UnsupportedProgramError,
)
from arenite.planner.programs.costs import PRESETS, Budget, Costs
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.programs.policy import Policy, is_exact
from arenite.planner.programs.program import COMPUTE, Program
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.planner.timing import check_timeline, simulate
from arenite.strategies import known_policies
from harness import bench, emit, note, parser, table
from policy_claims import CLAIMS
from real_steps import NETWORKS, training_step

COMPARED: tuple[Policy, ...] = tuple(known_policies().values())
BUDGETS = ("75%", "50%", "30%")
LIMITS: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("greedy-chains", "mobilenet-v2"): {"75%": 1.7, "50%": 5.0, "30%": 16.9},
    ("greedy-chains", "resnet50"): {"75%": 1.8, "50%": 4.6, "30%": 9.3},
    ("joint", "mobilenet-v2"): {"75%": 0.5},
    ("joint", "resnet50"): {"75%": 0.0},
    ("joint", "unet"): {"75%": 0.0},
}
"""Most extra time in %, to one decimal, by policy and network."""
_QUICK_S, _PER_STEPS = 2.0, 2700
_BATCH = 8


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one training step at one budget.

    Attributes:
        network: The network's name.
        num_steps: Steps of the program.
        machine: Whose speeds.
        budget: The budget.
        policy: The policy's name.
        of_peak: What it comes to, as a part of the peak without a policy; None for nothing.
        extra_time: Predicted extra time, as a part; None where the budget is not met.
        moved: Bytes that cross the link, out and back.
        stalled: Predicted time in which nothing computes, as a part of the time without a policy.
        decide_s: Processor seconds to decide.
        reason: Why it made nothing, if it did not.
    """

    network: str
    num_steps: int
    machine: str
    budget: str
    policy: str
    of_peak: float | None = None
    extra_time: float | None = None
    moved: int = 0
    stalled: float = 0.0
    decide_s: float = 0.0
    reason: str = ""


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and return whether the claims hold."""
    options = _options(arguments)
    machines = {name: PRESETS[name] for name in options.machine or PRESETS}
    policies = [each for each in COMPARED if not options.policy or each.name in options.policy]
    rows: list[Row] = []
    for name in options.network or NETWORKS:
        program = training_step(NETWORKS[name], options.batch)
        note(f"{name}: {len(program.steps)} steps, peak {peak_of(program):,} B")
        for machine, costs in machines.items():
            rows += _rows(name, program, machine, costs, policies)
    emit(options, rows, *_tables(rows))
    limits = LIMITS if options.batch == _BATCH else {}
    return 0 if _holds(rows, limits, strict=options.strict) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--network", action="append", choices=list(NETWORKS))
    options.add_argument("--policy", action="append", choices=[each.name for each in COMPARED])
    options.add_argument("--machine", action="append", choices=list(PRESETS))
    options.add_argument("--batch", type=int, default=_BATCH)
    options.add_argument("--strict", action="store_true", help="also hold the time to decide")
    return options.parse_args(arguments)


def _rows(
    network: str, program: Program, machine: str, costs: Costs, policies: Sequence[Policy]
) -> Iterator[Row]:
    before = simulate(program, costs)
    for policy in policies:
        note(f"{network}, {machine}: {policy.name}")
        for text in BUDGETS:
            key = (network, len(program.steps), machine, text, policy.name)
            begin = time.process_time()
            try:
                made = policy(program, Budget.parse(text), costs)
            except UnmetBudgetError as error:
                took = time.process_time() - begin
                yield Row(*key, of_peak=error.reached / peak_of(program), decide_s=took)
                continue
            except (UnsupportedProgramError, MissingDependencyError) as error:
                yield Row(*key, reason=str(error))
                continue
            took = time.process_time() - begin
            timeline = simulate(made, costs)
            check_timeline(made, costs, timeline)
            check_same_values(program, made, rounded=not is_exact(policy))
            yield Row(
                *key,
                of_peak=peak_of(made) / peak_of(program),
                extra_time=timeline.seconds / before.seconds - 1,
                moved=timeline.bytes_out + timeline.bytes_back,
                stalled=timeline.stalled_s(COMPUTE) / before.seconds,
                decide_s=took,
            )


def _tables(rows: Sequence[Row]) -> Iterator[Table]:
    for network, machine in dict.fromkeys((row.network, row.machine) for row in rows):
        its = [row for row in rows if (row.network, row.machine) == (network, machine)]
        lines = []
        for policy in dict.fromkeys(row.policy for row in its):
            cells = {row.budget: row for row in its if row.policy == policy}
            slowest = max(row.decide_s for row in cells.values())
            lines.append(
                (
                    policy, *(_cell(cells[budget]) for budget in BUDGETS), f"{slowest:.1f}",
                    CLAIMS.get(policy, "-"),
                )
            )  # fmt: skip
        yield table(
            f"{network}, {machine}: peak in % of none: extra time, moved (stalled)",
            ("policy", *BUDGETS, "seconds", "its paper claims"),
            lines,
        )


def _cell(row: Row) -> str:
    if row.of_peak is None:
        return "-"
    peak = f"{100 * row.of_peak:.1f}"
    if row.extra_time is None:
        return f"- ({peak})"
    found = f"{peak}: +{100 * max(0.0, row.extra_time):.1f} %"
    if row.moved:
        found += f", {row.moved / 1e6:,.0f} MB ({100 * row.stalled:.1f} %)"
    return found


def _holds(
    rows: Sequence[Row], limits: Mapping[tuple[str, str], Mapping[str, float]], *, strict: bool
) -> bool:
    times = {(row.network, row.machine, row.budget, row.policy): row.extra_time for row in rows}
    wrong: list[str] = []
    for (network, machine, budget, policy), chains in times.items():
        joint = times.get((network, machine, budget, "joint"))
        if policy != "greedy-chains" or chains is None or joint is None:
            continue
        if joint > chains + 1e-3:
            wrong.append(f"{network}, {machine}, {budget}: joint is slower than greedy-chains")
    for row in rows:
        most = limits.get((row.policy, row.network), {}).get(row.budget)
        if row.machine == "pcie" and most is not None:
            found = float("inf") if row.extra_time is None else 100 * row.extra_time
            if round(found, 1) > most:
                wrong.append(f"{row.network}, {row.budget}: {row.policy} adds over {most} %")
    quick = {policy.name for policy in COMPARED if policy.quick}
    for row in rows if strict else ():
        if row.policy in quick and row.decide_s > _QUICK_S * max(1, row.num_steps / _PER_STEPS):
            wrong.append(f"{row.network}: {row.policy} takes {row.decide_s:.1f} s to decide")
    for each in wrong:
        note(each)
    return not wrong


if __name__ == "__main__":
    raise SystemExit(main())
