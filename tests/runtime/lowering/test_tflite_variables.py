"""Models with variables run as LiteRT runs them, one run after the other."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")
pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")

from tflite import BuiltinOperator as Op

from arenite.pipeline.targets.compiling import lower
from arenite.planner.importers import load
from arenite.planner.tensors import TensorKind
from arenite.runtime import Session
from support.running import build
from support.shared_material import shared
from support.tflite_operator import Reference
from support.tiny_chains import LENGTH, Main, numbers, running_sum
from support.tiny_tflite import tiny_tflite

RUNS = 5


def delay() -> bytes:
    """`y` is the input of the run before."""
    return Main("x").variable("s").read("s", "y").assign("s", "x").model("y", s=[5, 6, 7, 8])


def exchange() -> bytes:
    main = Main("x").variable("a").variable("b").read("a", "one").read("b", "other")
    main.assign("a", "other").assign("b", "one").step(Op.ADD, "one x", "y")
    return main.model("y", a=[1, 1, 1, 1], b=[2, 2, 2, 2])


def read_again() -> bytes:
    """What is read after an assignment is what was assigned; the last one counts."""
    main = Main("x").variable("s").read("s", "old").step(Op.MUL, "old x", "first")
    main.assign("s", "first").read("s", "now").step(Op.RELU, "now", "y")
    main.step(Op.NEG, "now", "last").assign("s", "last")
    return main.model("y", s=[1, -1, 2, -2])


def assigned_twice() -> bytes:
    """Both variables take one value, which a clamp reads too and must not change."""
    main = Main("x").variable("a").variable("b").read("a", "old").step(Op.SUB, "old x", "new")
    main.assign("a", "new").assign("b", "new").read("b", "now").step(Op.RELU, "now", "y")
    return main.model("y", a=[1, 2, 3, 4], b=[0, 0, 0, 0])


def made_before_it_is_read() -> bytes:
    """The new value is there before the last reader of the old."""
    main = Main("x").variable("s").read("s", "old").step(Op.NEG, "x", "new").assign("s", "new")
    return main.step(Op.ADD, "old x", "y").model("y", s=[1, 2, 3, 4])


def two_handles() -> bytes:
    main = Main("x").variable("s").read("s", "old").step(Op.ADD, "old x", "y").variable("s")
    return main.assign("s", "y").model("y", s=[0, 1, 0, 1])


def constant() -> bytes:
    main = Main("x").variable("s").read("s", "old").step(Op.ADD, "old x", "y")
    main.add(numbers("c", [9, 8, 7, 6]))
    return main.assign("s", "c").model("y", s=[1, 2, 3, 4])


def of_itself() -> bytes:
    main = Main("x").variable("s").read("s", "old").assign("s", "old")
    return main.step(Op.ADD, "old x", "y").model("y", s=[1, 2, 3, 4])


MODELS = {
    each.__name__: each
    for each in (
        running_sum, delay, exchange, read_again, assigned_twice, made_before_it_is_read,
        two_handles, constant, of_itself,
    )
}  # fmt: skip


def outputs(session: Session, arrays: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    name = session.inputs[0].name
    return [list(session.run({name: array}).values()) for array in arrays]


def drawn(shape: Sequence[int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("poison", [0, 255])
@pytest.mark.parametrize("name", MODELS)
def test_runs_in_succession_are_those_of_litert(tmp_path: Path, name: str, poison: int) -> None:
    path = tmp_path / f"{name}.tflite"
    path.write_bytes(MODELS[name]())
    arrays = [drawn((LENGTH,), seed) for seed in range(RUNS)]
    reference = Reference(path)
    expected = [reference.run([array]) for array in arrays]
    with Session(build(path, tmp_path), poison=poison) as session:
        for _ in range(2):
            np.testing.assert_array_equal(outputs(session, arrays), expected)
            session.reset()


def test_a_variable_is_read_in_place_and_written_by_the_step_that_makes_its_value(
    tmp_path: Path,
) -> None:
    path = tmp_path / "model.tflite"
    main = Main("x").variable("s").read("s", "old").step(Op.MUL, "old x", "y")
    main.step(Op.NEG, "y", "new").assign("s", "new")
    path.write_bytes(main.step(Op.ABS, "new", "z").model("z", s=[1, 2, 3, 4]))
    program = lower(load(path, weights=True))
    assert [(step.inputs, step.outputs) for step in program.steps] == [
        (("s", "x"), ("y",)), (("y",), ("s",)), (("s",), ("z",)),
    ]  # fmt: skip
    assert program.tensors["s"].kind is TensorKind.STATE


def test_a_variable_without_a_first_value_starts_as_zeros(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    main = Main("x", once=()).variable("s").read("s", "old").step(Op.ADD, "old x", "y")
    path.write_bytes(tiny_tflite(main.assign("s", "y").subgraph("y")))
    array = drawn((LENGTH,), 0)
    with Session(build(path, tmp_path)) as session:
        found = outputs(session, [array, array])
    np.testing.assert_array_equal(found, [[array], [array + array]])


def test_a_streaming_network_gives_bit_for_bit_what_litert_gives(tmp_path: Path) -> None:
    path = shared("models/tflite/mww_okay_nabu.tflite")
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-128, 128, (1, 3, 40)).astype(np.int8) for _ in range(60)]
    reference = Reference(path, with_xnnpack=True)
    expected = [reference.run([array]) for array in arrays]
    with Session(build(path, tmp_path)) as session:
        for _ in range(2):
            np.testing.assert_array_equal(outputs(session, arrays), expected)
            session.reset()
