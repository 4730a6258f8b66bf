"""Random networks for a range of sizes, beside the programs of single sizes and ONNX Runtime.

`PYTHONPATH=tests python -m support.range_fuzz COUNT --seed N` runs as many as wanted.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import Built, build_model
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.program_files import ProgramFile
from arenite.planner import AreniteError, Budget, Memory
from arenite.planner.errors import PlanError, SizeError
from arenite.planner.programs import CostedMemory
from arenite.planner.sizes import highest_sizes
from arenite.runtime import Session
from arenite.runtime.operators.movement import Copy
from arenite.runtime.rewrites import Activations, Kernels, Loading, WeightBudget
from arenite.strategies import find_policy
from support.random_networks import Network
from support.running import assert_same, reference_outputs

_SHARE = 2e-4
"""Results may differ from ONNX Runtime's by this part of the scale."""
_SHARE_OF_HALVES = 2e-2


# Ways of building


def _whole(path: Path, reading: Reading, program: Path) -> None:
    build_model(path, reading, kernels=Kernels.DIRECT, is_whole=True).write(program)


def _quick(path: Path, reading: Reading, program: Path) -> None:
    build_model(path, reading, kernels=Kernels.DIRECT).write(program)


def _in_bands(path: Path, reading: Reading, program: Path) -> None:
    fitting = Fitting(path, reading)
    found = fitting.frontier()
    fitting.write(program, found[-1 - len(path.read_bytes()) % min(3, len(found))])


def _traded(policy: str) -> Callable[[Path, Reading, Path], None]:
    def write(path: Path, reading: Reading, program: Path) -> None:
        fitting = Fitting(path, reading)
        for share in (50, 70, 90, 97, 100):
            budget = Budget(fitting.whole.height * share // 100)
            try:
                found = fitting.within(budget, None, find_policy(policy))
            except PlanError:
                continue
            fitting.write(program, found)
            return

    return write


def _of_memories(path: Path, reading: Reading, program: Path) -> None:
    height = build_model(path, reading, kernels=Kernels.DIRECT, is_whole=True).arena_bytes
    memories = [
        CostedMemory(Memory("fast", height // 2), 1, 1), CostedMemory(Memory("slow"), 4, 6),
    ]  # fmt: skip
    build_model(path, reading, memories=memories, kernels=Kernels.DIRECT).write(program)


def _streamed(path: Path, reading: Reading, program: Path) -> None:
    loading = random.Random(len(path.read_bytes())).choice(list(Loading))
    for share in (30, 60, 90, 100):
        try:
            budget = WeightBudget(share, is_percent=True, loading=loading)
            _quick(path, replace(reading, weight_budget=budget), program)
        except AreniteError:
            continue
        return


Way = Callable[[Path, Reading, Path], None]
WAYS: dict[str, Way] = {
    "whole": _whole, "quick": _quick, "in bands": _in_bands,
    "spilled": _traded("offload-prefetch"), "recomputed": _traded("greedy-chains"),
    "of two memories": _of_memories, "streamed": _streamed,
}  # fmt: skip
"""How programs are written: all compute the same bits."""


def check(seed: int, folder: Path, way: str | None = None) -> str:
    """Return how a program was written and compared, or `refused` and why.

    Outputs must be those of the program of each size, bit for bit. Only close are they where its
    steps are other ones, as a scale may be merged with the weights at some lengths alone, where
    it stores other axes last, along which a sum then goes first, and with 16-bit floats, of which
    it may keep other tensors.

    Raises:
        AssertionError: Some result is wrong.
    """
    draw = random.Random(-seed - 1)
    way = way or draw.choice(list(WAYS))
    network = Network(seed, way)
    halves = Activations.FP16 if draw.random() < 0.15 else None
    path, program, alone = (folder / name for name in ("n.onnx", "n.arena", "fixed.arena"))
    onnx.save(network.model, path)
    reading = Reading(dims=network.dims, activations=halves)
    try:
        WAYS[way](path, reading, program)
    except SizeError as error:
        return f"refused: seed {seed}, {error}"
    if not program.exists():
        return f"{way}: none"
    options: dict[str, Any] = {"threads": draw.choice([1, 1, 2]), "guard": draw.random() < 0.3}
    sizes = [{each.name: draw.choice(each.values) for each in network.dimensions}
             for _ in range(2)]  # fmt: skip
    sizes.append({each.name: each.low for each in network.dimensions})
    draw.shuffle(sizes)
    is_close = ""
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(Session(program, poison=byte, **options)) for byte in (255, 0)
        ]
        _check_walks(sessions[0], sizes)
        for values in [*sizes, sizes[0]]:
            lengths = network.lengths(values)
            feeds = network.feeds(lengths)
            one, other = (session.run(feeds) for session in sessions)
            assert all(session.sizes.items() >= values.items() for session in sessions)
            assert _equal(one, other), (way, halves, options, values, "depends on poison")
            fixed = build_model(path, replace(reading, dims=lengths), kernels=Kernels.DIRECT,
                                is_whole=True)  # fmt: skip
            fixed.write(alone)
            with Session(alone) as session:
                expected = session.run(feeds)
            if halves is not None:
                # What cancels out leaves the rounding of operands, which are about 1.
                assert_same(one, expected, _SHARE_OF_HALVES, least=1.0)
                continue
            if not _equal(one, expected):
                kinds = _kinds(build_model(path, reading, kernels=Kernels.DIRECT, is_whole=True))
                assert kinds != _kinds(fixed), (
                    way, options, values, [n for n in one if not _equal(one, expected, [n])],
                )  # fmt: skip
                is_close = ", close"
            reference = reference_outputs(path, feeds)
            assert_same(one, {name: reference[name] for name in one}, _SHARE, least=1e-2)
    return f"{way}{', halves' if halves else is_close}"


def _check_walks(session: Session, sizes: Sequence[Mapping[str, int]]) -> None:
    """Check the file's turns at some sizes, by code that shares nothing with what wrote it.

    Raises:
        InvalidPlanError: A turn does not find its rows.
    """
    found = ProgramFile.of(session)
    found.check()
    for part in (found, *found.subranges):
        for values in sizes:
            full = {**highest_sizes(part.dimensions), **values}
            if all(full[each.name] in each for each in part.dimensions):
                part.check_at(full)


def _equal(
    one: Mapping[str, NDArray[Any]],
    other: Mapping[str, NDArray[Any]],
    names: Iterable[str] | None = None,
) -> bool:
    return all(
        one[name].shape == other[name].shape and one[name].tobytes() == other[name].tobytes()
        for name in names or one
    )


def _kinds(built: Built) -> Counter[tuple[str, int, Any]]:
    """Return how many steps of each kind and number of inputs compute numbers.

    Reductions are told apart by their axes, too: these depend on the order in which axes lie.
    """
    return Counter(
        (type(each.operator).__name__, len(each.inputs), getattr(each.operator, "axes", None))
        for each in built.compiled.program.steps
        if not isinstance(each.operator, Copy)
    )


def main() -> int:
    """Check as many random networks as asked for; name the wrong ones, count the refusals."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--way", choices=WAYS)
    arguments = parser.parse_args()
    outcomes: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = check(seed, Path(folder), arguments.way)
            except Exception as error:
                sys.stdout.write(f"\nseed {seed}: {type(error).__name__}: {str(error)[:600]}\n")
                sys.stdout.flush()
                outcome = "wrong"
        if outcome.startswith("refused"):
            sys.stdout.write(f"{outcome}\n")
            outcome = "refused"
        outcomes[outcome] += 1
    for outcome, count in outcomes.most_common():
        sys.stdout.write(f"{count:5} {outcome}\n")
    return int(outcomes["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
