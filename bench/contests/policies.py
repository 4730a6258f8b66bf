"""Policies that trade time for memory on training steps: simulated, and executed."""

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

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.comparison.policies import read_program
from arenite.pipeline.making.trading import Rescheduled, trade
from arenite.pipeline.targets.compiling import Lowered, lower_model, rules
from arenite.planner.errors import (
    MissingDependencyError,
    UnmetBudgetError,
    UnsupportedProgramError,
)
from arenite.planner.placement.strategy import run
from arenite.planner.programs.costs import LEAST, PRESETS, Budget, Costs, Link
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.programs.policy import Policy, is_exact
from arenite.planner.programs.program import COMPUTE, Program, Step
from arenite.planner.rewrites.candidate import Candidate
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.planner.tensors import TensorKind
from arenite.planner.timing import check_timeline, simulate
from arenite.runtime import Session
from arenite.runtime.program import program_pieces
from arenite.strategies import find, find_policy, known_policies
from arenite.training import make_step, read_for_training
from arenite.training.step import TrainingRecipe
from bench.harness.contest import TABLE, Asked, Row, contest, note, option
from bench.harness.measuring import Spread, interleaved, paired_ratios, timed
from bench.zoo.builder import with_batch_norms
from bench.zoo.classic import resnet50, unet
from bench.zoo.mobilenets import mobilenet_v2

CLAIMS: Mapping[str, str] = {
    "vdnn-all": "-89 % (AlexNet) to -95 % (GoogLeNet) of average memory; MICRO 2016",
    "vdnn-dynamic": "VGG-16 at batch 256, 28 GB, on 12 GB with 18 % loss; MICRO 2016",
    "tflms": "batches 4.7 times as large (ResNet-50), 2 times (3DUNet); TFLMS",
    "meng-sun": "2 to 30 times larger batches; NIPS ML Systems Workshop 2017",
    "modnn": "50 times less memory at +8 % time; DATE 2018",
    "layrub": "-58.2 % memory at +24.1 % time on average; TACO 2018",
    "superneurons-speed": "3.24 times as deep as other frameworks; PPoPP 2018",
    "superneurons-memory": "3.24 times as deep as other frameworks; PPoPP 2018",
    "capuchin": "-85 % memory at most; ASPLOS 2020",
    "sqrt": "48 GB to 7 GB at +30 % time (1000-layer ResNet); arXiv 1604.06174",
    "chen-greedy": "48 GB to 7 GB at +30 % time (1000-layer ResNet); arXiv 1604.06174",
    "gruslys": "-95 % memory at +33 % time (1000 steps of an RNN); NIPS 2016",
    "kusumoto": "-36 to -81 % of the peak; NeurIPS 2019",
    "checkmate": "5.1 times as large inputs at most; MLSys 2020",
    "gist-fp16": "1.8 times less memory on average at +4 % time; ISCA 2018",
    "cdma": "2.6 times fewer bytes on average, 13.8 at most; HPCA 2018",
}
"""Claims of the papers, of their own networks, batches and machines; others state none."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network and its loss; batch norms by the statistics of the batch follow convolutions."""

    make: Callable[[], onnx.ModelProto]
    loss: str = "cross-entropy"
    batch_statistics: bool = False


NETWORKS: Mapping[str, Network] = {
    "mobilenet-v2": Network(mobilenet_v2, batch_statistics=True),
    "resnet50": Network(resnet50, batch_statistics=True),
    "unet": Network(unet, "bce"),
}
"""By name, with batch norms where the published networks have them."""
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
_QUICK_S, _PER_STEPS, _BATCH = 2.0, 2700, 8
_CELLS = {"policy": "", **dict.fromkeys(BUDGETS, ""), "s": ".1f", "its paper claims": ""}


def training_step(network: Network, batch: int) -> Program:
    """Return the step of SGD of a network with random weights, the states not counted."""
    model = network.make()
    if network.batch_statistics:
        model = with_batch_norms(model)
    recipe = TrainingRecipe(network.loss, batch_statistics=network.batch_statistics)
    with tempfile.TemporaryDirectory() as text:
        path = Path(text) / "network.onnx"
        onnx.save(model, path)
        step = make_step(read_for_training(path, batch), recipe)
        path = Path(text) / "step.onnx"
        onnx.save(step.model, path)
        return read_program(path, Reading())


@dataclass(frozen=True, slots=True)
class Tried:
    """One policy on one training step at one budget.

    Attributes:
        network: Name of the network.
        num_steps: Steps of the program.
        machine: Name of the stated speeds.
        budget: The budget.
        policy: Name of the policy.
        of_peak: Its peak in parts of that without a policy; None if the policy refuses the step.
        extra_time: Predicted extra time, as a part; None where the budget is not met.
        moved: Bytes over the link, out and back.
        stalled: Predicted idle time of the computation, in parts of the time without a policy.
        decide_s: Processor seconds to decide.
        reason: Why the policy refuses the step.
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

    @property
    def cell(self) -> str:
        """Peak in %, extra time, and bytes moved with the idle time."""
        if self.of_peak is None:
            return "-"
        peak = f"{100 * self.of_peak:.1f}"
        if self.extra_time is None:
            return f"- ({peak})"
        found = f"{peak}: +{100 * max(0.0, self.extra_time):.1f} %"
        if self.moved:
            found += f", {self.moved / 1e6:,.0f} MB ({100 * self.stalled:.1f} %)"
        return found


@contest(
    {f"{name}, {machine}": _CELLS for name in NETWORKS for machine in PRESETS},
    options=[
        option("--network", action="append", choices=list(NETWORKS)),
        option("--policy", action="append", choices=[each.name for each in COMPARED]),
        option("--machine", action="append", choices=list(PRESETS)),
        option("--batch", type=int, default=_BATCH),
        option("--strict", action="store_true", help="also limit the seconds to decide"),
    ],
)
def policies(asked: Asked) -> Iterator[Row]:
    """Policies that trade time for memory, on training steps at budgets of their peaks.

    The networks are those of the zoo at batch 8 with random weights; states are not counted. Every
    program is simulated, the simulation checked, and the program shown to compute the same values,
    rounded where the policy rounds. A cell has the peak in % of none: extra time, bytes moved
    (idle time); in brackets the peak of a policy that misses the budget. Claims: `joint` is never
    slower than `greedy-chains`; at batch 8 by the speeds of `pcie` neither is slower than stated;
    with `--strict` every quick policy decides within 2 s for each 2,700 steps.
    """
    machines = asked.given.machine or list(PRESETS)
    names = asked.given.policy or [each.name for each in COMPARED]
    found: list[Tried] = []
    for name in asked.given.network or NETWORKS:
        program = training_step(NETWORKS[name], asked.given.batch)
        note(f"{name}: {len(program.steps)} steps, peak {peak_of(program):,} B")
        for machine in machines:
            tried = []
            for policy in (each for each in COMPARED if each.name in names):
                note(f"{name}, {machine}: {policy.name}")
                its = list(_tried(name, program, machine, PRESETS[machine], policy))
                tried += its
                yield {
                    TABLE: f"{name}, {machine}", "policy": policy.name,
                    **{each.budget: each.cell for each in its},
                    "s": max(each.decide_s for each in its),
                    "its paper claims": CLAIMS.get(policy.name, "-"),
                }  # fmt: skip
            found += tried
    check(asked, found, LIMITS if asked.given.batch == _BATCH else {}, strict=asked.given.strict)


def _tried(
    network: str, program: Program, machine: str, costs: Costs, policy: Policy
) -> Iterator[Tried]:
    before = simulate(program, costs)
    for text in BUDGETS:
        key = (network, len(program.steps), machine, text, policy.name)
        begin = time.process_time()
        try:
            made = policy(program, Budget.parse(text), costs)
        except UnmetBudgetError as error:
            took = time.process_time() - begin
            yield Tried(*key, of_peak=error.least / peak_of(program), decide_s=took)
            continue
        except (UnsupportedProgramError, MissingDependencyError) as error:
            yield Tried(*key, reason=str(error))
            continue
        took = time.process_time() - begin
        timeline = simulate(made, costs)
        check_timeline(made, costs, timeline)
        check_same_values(program, made, rounded=not is_exact(policy))
        yield Tried(
            *key,
            of_peak=peak_of(made) / peak_of(program),
            extra_time=timeline.seconds / before.seconds - 1,
            moved=timeline.bytes_out + timeline.bytes_back,
            stalled=timeline.stalled_s(COMPUTE) / before.seconds,
            decide_s=took,
        )


def check(
    asked: Asked,
    found: Sequence[Tried],
    limits: Mapping[tuple[str, str], Mapping[str, float]],
    *,
    strict: bool,
) -> None:
    """Require the claims."""
    times = {(each.network, each.machine, each.budget, each.policy): each for each in found}
    for (network, machine, budget, policy), each in times.items():
        joint = times.get((network, machine, budget, "joint"))
        if policy != "greedy-chains" or each.extra_time is None or joint is None:
            continue
        if joint.extra_time is not None:
            asked.require(
                joint.extra_time <= each.extra_time + 1e-3,
                f"{network}, {machine}, {budget}: joint is no slower than greedy-chains",
            )
    quick = {policy.name for policy in COMPARED if policy.quick}
    for each in found:
        most = limits.get((each.policy, each.network), {}).get(each.budget)
        if each.machine == "pcie" and most is not None:
            extra = float("inf") if each.extra_time is None else 100 * each.extra_time
            claim = f"{each.network}, {each.budget}: {each.policy} adds at most {most} %"
            asked.require(round(extra, 1) <= most, claim)
        if strict and each.policy in quick:
            most_s = _QUICK_S * max(1, each.num_steps / _PER_STEPS)
            claim = f"{each.network}: {each.policy} decides in {each.decide_s:.1f} s"
            asked.require(each.decide_s <= most_s, claim)


EXECUTED: Mapping[str, Callable[[int], onnx.ModelProto]] = {
    "mobilenet-v2": mobilenet_v2,
    "resnet50": resnet50,
}
EXECUTED_POLICIES = ("sqrt", "greedy-chains", "joint", "offload-prefetch")
_BLOCK = 1 << 24


@dataclass(frozen=True)
class MeasuredCosts(Costs):
    """Costs of steps that were measured one by one.

    Attributes:
        by_identity: Seconds by the identity of the operator, which a repeated step shares.
    """

    by_identity: Mapping[int, float] = field(default_factory=dict)

    def seconds(self, program: Program, step: Step) -> float:
        """Return the time of the step, or that of its bytes over the link."""
        known = self.by_identity.get(id(step.operator))
        return Costs.seconds(self, program, step) if known is None else known


@contest(
    {"Training steps by policies, in our runtime": {
        "network": "", "policy": "", "budget": "", "arena, B": "", "of whole": ".1%",
        "steps again": "", "moved, B": "", "file, B": "", "predicted": ".2f", "measured": ".2f",
        "same bits": "",
    }},
    rounds=5,
    options=[
        option("--network", action="append", choices=list(EXECUTED)),
        option("--policy", action="append", choices=EXECUTED_POLICIES),
        option("--size", type=int, default=224, help="rows and columns of an image"),
    ],
)  # fmt: skip
def policies_executed(asked: Asked) -> Iterator[Row]:
    """Training steps by policies in our runtime, tensors spilled to a file, beside whole steps.

    Each step of SGD at a batch of 2, batch norms folded, is lowered, rewritten by a policy,
    planned and run; tensors are spilled to a temporary file in $TMPDIR or /tmp. Budgets are shares
    of the arena besides the weights; `sqrt` has one answer. Predictions stand on a profile of the
    whole program and on the measured speed of the file; times are paired with those of the whole
    program, on one thread beside that of the moves. Claims: the bits of every output and weight
    are those without a policy, and the arena is the plan's to the byte.
    """
    for name in asked.given.network or EXECUTED:
        with tempfile.TemporaryDirectory() as text:
            yield from _executed(name, Path(text), asked)


def _executed(name: str, folder: Path, asked: Asked) -> Iterator[Row]:
    lowered = _lowered_step(name, asked.given.size, folder)
    program, place = lowered.program, partial(run, find("best"))
    given = Candidate.of(program, rules(), place, 0.0)
    height = given.plan.height
    states = sum(t.size for t in program.tensors.values() if t.kind is TensorKind.STATE)
    pieces = list(program_pieces(lowered.compiled(given.derivation).assemble(given.plan)))
    with Session.of_pieces(pieces, name) as whole:
        feeds = _feeds(whole)
        expected = _bits(whole, feeds)
        costs = _measured_costs(program, whole, _link(folder))
        note(f"{name}: {len(program.steps)} steps, arena {height:,} B, states {states:,}")
        note(f"{name}: link {costs.link.out / 1e6:,.0f} and {costs.link.back / 1e6:,.0f} MB/s")
        for policy in asked.given.policy or EXECUTED_POLICIES:
            for share in (75, 50) if policy != "sqrt" else (0,):
                limit = states + (height - states) * share // 100
                budget = Budget(limit) if share else LEAST
                try:
                    traded = trade(given, find_policy(policy), budget, costs, rules(), place)
                except UnmetBudgetError as error:
                    note(str(error))
                    continue
                rescheduled = traded.note(Rescheduled)
                assert rescheduled is not None
                assembly = lowered.compiled(traded.derivation).assemble(traded.plan)
                made = list(program_pieces(assembly))
                with Session.of_pieces(made, policy) as session:
                    is_same = _bits(session, feeds) == expected
                    is_same &= session.arena_bytes == traded.height
                    ratios = _ratios(whole, session, feeds, asked.rounds)
                asked.require(is_same, f"{name}, {policy}: the same bits in the planned arena")
                yield {
                    "network": name, "policy": policy,
                    "budget": f"{share} %" if share else "least",
                    "arena, B": traded.height,
                    "of whole": (traded.height - states) / (height - states),
                    "steps again": rescheduled.num_repeated, "moved, B": rescheduled.bytes_moved,
                    "file, B": traded.spilled, "predicted": 1 + traded.slowdown,
                    "measured": ratios, "same bits": is_same,
                }  # fmt: skip


def _lowered_step(name: str, size: int, folder: Path) -> Lowered:
    path = folder / "model.onnx"
    onnx.save(EXECUTED[name](size), path)
    step = make_step(read_for_training(path, 2), TrainingRecipe("cross-entropy", rate=0.01))
    path = folder / "step.onnx"
    onnx.save(step.model, path)
    return lower_model(path)


def _link(folder: Path) -> Link:
    """Return the speed of a file, used as the moves use it."""
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


def _measured_costs(program: Program, session: Session, link: Link) -> MeasuredCosts:
    """Return the time of each step, the least of some profiles."""
    profiles = [session.profile() for _ in range(3)]
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
