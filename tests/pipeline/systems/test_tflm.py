"""Systems for TensorFlow Lite Micro, in its interpreters, beside each model alone."""

import itertools
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import tflite
from tflite import BuiltinOperator as Op
from tflite import TensorType

from arenite.pipeline.systems import (
    SystemDescription,
    SystemFileError,
    TflmSystem,
    plan_for_tflm,
    tflm,
    tflm_header,
)
from arenite.pipeline.systems.foreign import SharedArena
from arenite.runtime.targets.tflm import read_tflm_model
from arenite.strategies import find
from support.shared_head import SharedHead
from support.shared_material import shared
from support.tiny_chains import dense_chain, float_tensor
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

real = pytest.mark.skipif(
    find_spec("tflite_micro") is None, reason="the extra 'tflm' is not installed"
)


def largest() -> bytes:
    """The largest element of each row: its kernel asks for scratch."""
    axis = TinyTensor("axis", (1,), TensorType.INT32, np.int32(1).tobytes())
    tensors = [float_tensor("x", 16), axis, float_tensor("y", 1)]
    options = ("ReducerOptions", {"KeepDims": 1})
    operator = TinyOperator(Op.REDUCE_MAX, [0, 1], [2], options=options)
    return tiny_tflite(TinySubgraph(tensors, [operator], [0], [2]))


MODELS = {
    "first": dense_chain((8, 8, 32)), "second": dense_chain((32, 16, 8)), "largest": largest(),
}  # fmt: skip


def system_of(folder: Path, schedule: str, more: str = "") -> SystemDescription:
    lines = [f"schedule = [{schedule}]"]
    for name, data in MODELS.items():
        if f'"{name}"' in schedule:
            (folder / f"{name}.tflite").write_bytes(data)
            lines += [f"[models.{name}]", f'path = "{name}.tflite"']
            lines += ['keep = ["x2"]'] if name == "first" else []
    path = folder / "system.toml"
    path.write_text("\n".join((*lines, more)), encoding="utf-8")
    return SystemDescription.read(path)


HANDED_ON = """
[[connect]]
from = "first.x2"
to = "second.x0"
"""
LARGEST_FIRST = find("greedy-by-size")
"""Puts what is handed on at the first byte, where interpreters look for room first."""
SCHEDULE = '"first", "second", { maybe = ["largest"] }'


def drawn(path: Path, random: np.random.Generator) -> dict[str, np.ndarray]:
    program = read_tflm_model(path).program
    found = {}
    for port in program.inputs:
        tensor = program.tensors[port.tensor]
        kind = np.dtype(tensor.dtype.label)
        if kind.kind == "f":
            found[port.name] = random.standard_normal(tensor.shape).astype(kind)
        else:
            found[port.name] = random.integers(-128, 128, tensor.shape).astype(kind)
    return found


class Alone:
    """Each model in an unchanged interpreter with an arena of its own."""

    def __init__(self, system: SystemDescription) -> None:
        from tflite_micro.python.tflite_micro.runtime import Interpreter

        self.made = {
            name: (Interpreter.from_file(str(each.path), arena_size=2**20), each.path)
            for name, each in system.models.items()
        }

    def run(self, name: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        interpreter, path = self.made[name]
        program = read_tflm_model(path).program
        for index, port in enumerate(program.inputs):
            interpreter.set_input(inputs[port.name], index)
        interpreter.invoke()
        return {port.name: interpreter.get_output(n) for n, port in enumerate(program.outputs)}


def runs_alike(
    system: SystemDescription, planned: TflmSystem, names: list[str], poison: int
) -> bool:
    """Run models in an order, twice, and tell whether all outputs are those of each alone."""
    random = np.random.default_rng(1)
    head, alone = SharedHead(planned, poison), Alone(system)
    handed = {each.target: each.source for each in system.connections}
    same = True
    for _ in range(2):
        made: dict[str, np.ndarray] = {}
        for name in names:
            given = drawn(system.models[name].path, random)
            expected = alone.run(
                name, {k: made[handed[f"{name}.{k}"]] if f"{name}.{k}" in handed else v
                       for k, v in given.items()},
            )  # fmt: skip
            found = head.run(name, given)
            same &= all(found[key].tobytes() == each.tobytes() for key, each in expected.items())
            made |= {f"{name}.{key}": each for key, each in expected.items()}
        for name in names:
            for output in system.models[name].keep:
                kept = made[f"{name}.{output}"]
                same &= head.tensor(name, output, kept).tobytes() == kept.tobytes()
    return same


@real
def test_what_is_handed_on_and_kept_lies_where_it_was_made(tmp_path):
    system = system_of(tmp_path, SCHEDULE, HANDED_ON)
    planned = plan_for_tflm(system, strategy=LARGEST_FIRST)
    assert planned.optimal
    assert planned.shared.copied == 32 * 4
    assert [len(each.reserved) for each in planned.members.values()] == [0, 1, 1]
    assert planned.tail > planned.stock_tail > 0
    places = planned.shared.places
    assert places("first")["x2"] == places("second")["x0"]
    for names, poison in itertools.product((["first", "second"], list(MODELS)), (0x00, 0xFF)):
        assert runs_alike(system, planned, names, poison)


@real
def test_one_allocator_needs_no_more_than_the_header_states(tmp_path):
    planned = plan_for_tflm(system_of(tmp_path, SCHEDULE, HANDED_ON), strategy=LARGEST_FIRST)
    stated = re.search(r"SYSTEM_ARENA_BYTES (\d+)", tflm_header(planned))
    assert stated is not None
    arena_bytes = int(stated[1])
    head = SharedHead(planned, 0xFF, arena_bytes)
    assert planned.head < head.used_bytes <= arena_bytes


@real
def test_without_reserved_bytes_scratch_would_lie_over_what_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(SharedArena, "held", lambda *_: [])
    monkeypatch.setattr(tflm, "_asked", lambda _: ({}, {}, "not asked"))
    system = system_of(tmp_path, SCHEDULE, HANDED_ON)
    planned = plan_for_tflm(system, strategy=LARGEST_FIRST)
    assert not runs_alike(system, planned, list(MODELS), 0x00)


@real
def test_real_models_compute_the_same_in_every_order(tmp_path):
    names = ("mww_okay_nabu", "micro_speech_quantized")  # the first has states
    lines = [f'schedule = [{{ any_order = ["{names[0]}", "{names[1]}"] }}]']
    for name in names:
        lines += [f"[models.{name}]", f'path = "{shared(f"models/tflite/{name}.tflite")}"']
    path = tmp_path / "system.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    system = SystemDescription.read(path)
    planned = plan_for_tflm(system)
    assert planned.optimal
    assert planned.head == planned.height <= planned.stock_head
    for order in itertools.permutations(names):
        assert runs_alike(system, planned, list(order), 0xFF)


def test_without_the_interpreter_heads_are_computed(tmp_path, without):
    without("tflite_micro")
    planned = plan_for_tflm(system_of(tmp_path, SCHEDULE, HANDED_ON))
    assert "arenite[tflm]" in planned.not_measured
    assert planned.stock_tail == planned.tail == 0
    assert planned.head == planned.height
    model = tflite.Model.GetRootAs(planned.members["largest"].data, 0).Subgraphs(0)
    assert model.Tensors(model.TensorsLength() - 1).Name() == b"reserved"
    assert [model.InputsLength(), model.OutputsLength()] == [2, 2]
    header = tflm_header(planned)
    assert "SYSTEM_ARENA_BYTES" not in header
    assert f"#define SYSTEM_HEAD_BYTES {planned.head}\n" in header
    assert "sequence (first, second, maybe (largest))" in header
    assert "largest: its last input and output keep bytes of others." in header


@pytest.mark.parametrize(
    ("schedule", "more", "words"),
    [
        ('{ at_once = ["first", "largest"] }', "", "run one at a time"),
        ('"largest"', 'weights = "25%"', "'largest' has weights: TensorFlow Lite Micro runs"),
        ('"largest"', "dims = { n = 3 }", "leave out dims"),
        ('"first", "largest"', '[[connect]]\nfrom = "first.x2"\nto = "largest.x"', "cannot feed"),
    ],
)
def test_what_interpreters_cannot_do_is_refused(tmp_path, schedule, more, words):
    with pytest.raises(SystemFileError, match=words):
        plan_for_tflm(system_of(tmp_path, schedule, more))
