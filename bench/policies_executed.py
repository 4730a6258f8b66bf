"""Policies that trade time for memory, executed: training steps in our runtime, beside whole ones.

    python bench/policies_executed.py [--network mobilenet-v2] [--size 224] [--rounds 5]

Each step of SGD at a batch of 2, batch norms folded, is lowered, rewritten by a policy, planned,
and run: steps run again, and tensors are spilled to a temporary file in $TMPDIR or /tmp for real.
Budgets are shares of what the arena takes besides the weights, which no policy can do anything
about; `sqrt` has one answer. Predictions stand on what each step took in a profile of the whole
program, and on how quickly that file took and gave bytes; times are paired with those of the whole
program in interleaved rounds, on one thread beside that of the moves.

Claims: every output and every weight is the same to the bit as without a policy, and the arena is
the plan's to the byte.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from arenite.pipeline.making.trading import Rescheduled, trade
from arenite.pipeline.targets.compiling import Lowered, lower_model, rules
from arenite.planner.errors import UnmetBudgetError
from arenite.planner.placement.strategy import run
from arenite.planner.programs.costs import LEAST, Budget, Costs, Link
from arenite.planner.programs.program import Program, Step
from arenite.planner.rewrites.candidate import Candidate
from arenite.planner.tensors import TensorKind
from arenite.runtime import Session
from arenite.runtime.program import program_pieces
from arenite.strategies import find, find_policy
from arenite.training import TrainingRecipe, make_step, read_for_training
from harness import Spread, bench, emit, interleaved, note, paired_ratios, parser, table, timed
from zoo import mobilenet_v2, resnet50

NETWORKS: Mapping[str, Callable[[int], onnx.ModelProto]] = {
    "mobilenet-v2": mobilenet_v2.network,
    "resnet50": resnet50.network,
}
POLICIES = ("sqrt", "greedy-chains", "joint", "offload-prefetch")
SHARES = (75, 50)
BATCH = 2
_BLOCK = 1 << 24
_PROFILES = 3


@dataclass(frozen=True)
class MeasuredCosts(Costs):
    """Costs of steps that were measured one by one.

    Attributes:
        by_identity: Seconds by the identity of the operator, which a step that runs again shares.
    """

    by_identity: Mapping[int, float] = field(default_factory=dict)

    def seconds(self, program: Program, step: Step) -> float:
        """Return the time that the step took, or that of its bytes over the link."""
        known = self.by_identity.get(id(step.operator))
        return Costs.seconds(self, program, step) if known is None else known


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one step at one budget.

    Attributes:
        network: The network's name.
        policy: The policy's name.
        budget: Share of the arena besides the weights, or the least.
        arena_bytes: Of the arena as it was run, weights inside.
        of_whole: It besides the weights, as a part of that of the whole program.
        steps_again: Steps that run once more.
        moved_bytes: Out and back.
        file_bytes: Of the temporary file.
        predicted: Time over that of the whole program.
        measured: The same, measured.
        is_same: Whether all bits and the arena are as they should be.
    """

    network: str
    policy: str
    budget: str
    arena_bytes: int
    of_whole: float
    steps_again: int
    moved_bytes: int
    file_bytes: int
    predicted: float
    measured: Spread
    is_same: bool


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and return whether the claims hold."""
    options = parser(__doc__)
    options.add_argument("--network", action="append", choices=list(NETWORKS))
    options.add_argument("--policy", action="append", choices=POLICIES)
    options.add_argument("--size", type=int, default=224, help="rows and columns of an image")
    options.add_argument("--rounds", type=int, default=5)
    parsed = options.parse_args(arguments)
    rows = [row for name in parsed.network or NETWORKS for row in _rows(name, parsed)]
    emit(
        parsed,
        rows,
        table(
            "Training steps by policies, in our runtime",
            ("network", "policy", "budget", "arena, B", "of whole", "again", "moved, B", "file, B",
             "predicted", "measured", "range", "bits and arena"),
            [
                (r.network, r.policy, r.budget, f"{r.arena_bytes:,}", f"{100 * r.of_whole:.1f} %",
                 f"{r.steps_again:,}", f"{r.moved_bytes:,}", f"{r.file_bytes:,}",
                 f"{r.predicted:.3f}", f"{r.measured.median:.3f}",
                 f"{r.measured.least:.3f} to {r.measured.most:.3f}",
                 "as they should be" if r.is_same else "WRONG")
                for r in rows
            ],
        ),
    )  # fmt: skip
    return int(not all(row.is_same for row in rows))


def step_of(name: str, size: int, folder: Path) -> Lowered:
    """Return the training step of a network, lowered."""
    path = folder / "model.onnx"
    onnx.save(NETWORKS[name](size), path)
    step = make_step(read_for_training(path, BATCH), TrainingRecipe("cross-entropy", rate=0.01))
    path = folder / "step.onnx"
    onnx.save(step.model, path)
    return lower_model(path)


def link_of(folder: Path) -> Link:
    """Return how quickly a file takes and gives bytes, as the moves use it."""
    block = np.random.default_rng(0).integers(0, 256, _BLOCK, np.uint8)
    speeds = []
    with (folder / "link").open("w+b", buffering=0) as stream:
        for work in (lambda: stream.write(block.data), lambda: stream.readinto(block.data)):
            times = []
            for _ in range(5):
                stream.seek(0)
                times.append(timed(work)[0])
            speeds.append(_BLOCK / statistics.median(times))
    out, back = speeds
    return Link(out, back, duplex=False)


def _rows(name: str, options: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        lowered = step_of(name, options.size, folder)
        program, place = lowered.program, partial(run, find("best"))
        given = Candidate.of(program, rules(), place, 0.0)
        plan = given.plan
        states = sum(t.size for t in program.tensors.values() if t.kind is TensorKind.STATE)
        pieces = list(program_pieces(lowered.compiled(given.derivation).assemble(plan)))
        with Session.of_pieces(pieces, name) as whole:
            feeds = _feeds(whole)
            expected = _bits(whole, feeds)
            costs = _measured_costs(program, whole, link_of(folder))
            note(f"{name}: {len(program.steps)} steps, arena {plan.height:,} B, states {states:,}")
            note(f"{name}: link {costs.link.out / 1e6:,.0f} and {costs.link.back / 1e6:,.0f} MB/s")
            for policy in options.policy or POLICIES:
                for share in SHARES if policy != "sqrt" else (0,):
                    limit = states + (plan.height - states) * share // 100
                    budget = Budget(limit) if share else LEAST
                    begun = time.perf_counter()
                    try:
                        traded = trade(given, find_policy(policy), budget, costs, rules(), place)
                    except UnmetBudgetError as error:
                        note(str(error))
                        continue
                    note(f"{name}: {policy} decided in {time.perf_counter() - begun:.1f} s")
                    rescheduled = traded.note(Rescheduled)
                    assert rescheduled is not None
                    assembly = lowered.compiled(traded.derivation).assemble(traded.plan)
                    made = list(program_pieces(assembly))
                    with Session.of_pieces(made, policy) as session:
                        is_same = _bits(session, feeds) == expected
                        is_same &= session.arena_bytes == traded.height
                        ratios = _ratios(whole, session, feeds, options.rounds)
                    yield Row(
                        name,
                        policy,
                        f"{share} %" if share else "least",
                        traded.height,
                        (traded.height - states) / (plan.height - states),
                        rescheduled.num_repeated,
                        rescheduled.bytes_moved,
                        traded.spilled,
                        1 + traded.slowdown,
                        ratios,
                        is_same,
                    )


def _measured_costs(program: Program, session: Session, link: Link) -> MeasuredCosts:
    """Return the time of each step, the least of some profiles."""
    profiles = [session.profile() for _ in range(_PROFILES)]
    by_name = {
        steps[0].name: min(step.nanoseconds for step in steps) / 1e9
        for steps in zip(*profiles, strict=True)
    }
    by_identity = {id(step.operator): by_name[step.name] for step in program.steps}
    return MeasuredCosts(30e9, 20e9, link, by_identity=by_identity)


def _feeds(session: Session) -> dict[str, Any]:
    draw = np.random.default_rng(0)
    return {
        port.name: draw.standard_normal(port.shape).astype(port.dtype)
        if port.dtype.kind == "f"
        else draw.integers(0, 2, port.shape).astype(port.dtype)
        for port in session.inputs
    }


def _bits(session: Session, feeds: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the bits of two runs: the outputs of the second, and the weights after it."""
    session.reset()
    for _ in range(2):
        outputs = session.run(feeds)
    return {name: array.tobytes() for name, array in {**outputs, **session.states}.items()}


def _ratios(whole: Session, other: Session, feeds: Mapping[str, Any], rounds: int) -> Spread:
    found = interleaved(
        {
            "other": lambda: timed(lambda: other.run(feeds))[0],
            "whole": lambda: timed(lambda: whole.run(feeds))[0],
        },
        rounds,
    )
    return paired_ratios(found["other"], found["whole"])


if __name__ == "__main__":
    raise SystemExit(main())
