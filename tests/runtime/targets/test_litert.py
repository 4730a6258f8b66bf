import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from tflite import BuiltinOperator

from arenite.planner.errors import MissingDependencyError, UnsupportedModelError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.verification import InvalidPlanError
from arenite.runtime import UnexpectedRuntimeError
from arenite.runtime.targets.litert import (
    FixedShapeError,
    PlannedInterpreter,
    StockPlacementWarning,
    litert_problem,
)
from arenite.runtime.targets.litert import interpreter as interpreter_module
from arenite.runtime.targets.litert import stock as stock_module
from arenite.runtime.targets.litert.stock import AllocationType, TfLiteContext, tensors
from arenite.strategies import find
from support.hostile_models import tflite_chains
from support.shared_material import shared
from support.tiny_chains import binary_then, dense_chain, dense_subgraph, running_sum
from support.tiny_tflite import tiny_tflite

pytest.importorskip("ai_edge_litert.interpreter", reason="the extra 'litert' is not installed")
schema = pytest.importorskip("ai_edge_litert.schema_py_generated")

RUNNABLE = (
    "deeplabv3_mnv2_dm05_pascal_quant",
    "hello_world_float",
    "hello_world_int8",
    "keyword_scrambled",
    "kws_ref_model",
    "micro_speech_quantized",
    "mnist_lstm_float",
    "mobilenet_v1_0.5_160_quant",
    "pretrainedResnet",
    "pretrainedResnet_quant",
    "split_concat",
    "tf2_mobilenet_v2_1.0_224_ptq",
    "ultraface_rfb320",
    "vww_96_float",
    "vww_96_int8",
)
SIZES = (48, 32, 32, 64)
UNARY = "ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOGISTIC NEG RELU RELU6 RELU_N1_TO_1 ROUND RSQRT SIN SQRT SQUARE TANH".split()  # noqa: E501, SIM905
BINARY = "ADD DIV MAXIMUM MINIMUM MUL POW PRELU SQUARED_DIFFERENCE SUB".split()  # noqa: SIM905


def planned(model: Path | bytes, **options: Any) -> PlannedInterpreter:
    return PlannedInterpreter(model, strategy=find("best"), **options)


def stock(model: Path | bytes) -> Any:
    interpreter = stock_module.load_interpreter(model, 1)
    interpreter.allocate_tensors()
    return interpreter


def drawn(random: np.random.Generator, details: dict[str, Any]) -> Any:
    kind = np.dtype(details["dtype"])
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return random.integers(limits.min, limits.max, details["shape"], kind, endpoint=True)
    return random.standard_normal(details["shape"]).astype(kind)


def outputs(interpreter: Any) -> list[bytes]:
    random = np.random.default_rng(0)
    result = []
    for _ in range(3):
        for details in interpreter.get_input_details():
            interpreter.set_tensor(details["index"], drawn(random, details))
        interpreter.invoke()
        for details in interpreter.get_output_details():
            result.append(interpreter.get_tensor(details["index"]).tobytes())
    return result


def are_inside(interpreter: PlannedInterpreter) -> bool:
    first = interpreter.arena.ctypes.data
    last = first + interpreter.arena.size
    return all(
        first <= address and address + size <= last
        for address, size in interpreter.tensor_addresses()
    )


def num_left_in_stock_arena(interpreter: PlannedInterpreter) -> int:
    context = interpreter._placement._hook.context_address
    return sum(
        tensor.allocation_type == AllocationType.ARENA and not tensor.is_variable
        for tensor in tensors(TfLiteContext.from_address(context))
    )


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_real_model_runs_in_our_arena_as_it_does_in_stock(name: str):
    path = shared(f"models/tflite/{name}.tflite")
    expected = outputs(stock(path))
    for keep_inputs in (True, False):
        interpreter = planned(path, keep_inputs=keep_inputs)
        assert outputs(interpreter) == expected
        assert are_inside(interpreter)
        assert num_left_in_stock_arena(interpreter) == 0
        assert interpreter.arena_bytes is not None
        assert interpreter.stock_bytes is not None
        assert interpreter.arena_bytes <= interpreter.stock_bytes


@pytest.mark.parametrize(
    ("name", "stock_bytes", "arena_bytes"),
    [
        ("mobilenet_v1_0.5_160_quant", 454_400, 352_000),
        ("pretrainedResnet_quant", 199_680, 196_608),
        ("vww_96_int8", 108_288, 108_288),
    ],
)
def test_arenas_have_the_sizes_that_the_guide_states(
    name: str, stock_bytes: int, arena_bytes: int
):
    interpreter = planned(shared(f"models/tflite/{name}.tflite"))
    assert (interpreter.stock_bytes, interpreter.arena_bytes) == (stock_bytes, arena_bytes)


def test_kernel_scratch_is_among_the_records():
    problem = litert_problem(shared("models/tflite/pretrainedResnet_quant.tflite"))
    scratch = [record for record in problem.records if record.name.endswith("/scratch")]
    assert max(record.size for record in scratch) == 147_456


def test_a_small_model_runs_in_our_arena():
    model = dense_chain(SIZES)
    interpreter = planned(model)
    assert outputs(interpreter) == outputs(stock(model))
    assert are_inside(interpreter)
    assert interpreter.arena_bytes == 384


@pytest.mark.parametrize("operator", UNARY + BINARY)
def test_results_written_in_place_are_those_of_stock(operator: str):
    model = binary_then(getattr(BuiltinOperator, operator), operands=1 if operator in UNARY else 2)
    interpreter = planned(model)
    assert interpreter.problem is not None
    assert any(len(record.tensors) > 1 for record in interpreter.problem.records)
    assert outputs(interpreter) == outputs(stock(model))


def test_a_deliberate_overlap_changes_the_outputs(monkeypatch: pytest.MonkeyPatch):
    model = dense_chain(SIZES)
    monkeypatch.setattr(interpreter_module, "verify", lambda _problem, _plan: None)

    def overlapping(problem: Problem) -> Plan:
        return Plan.of(problem, (0,) * len(problem.records), "wrong")

    assert outputs(PlannedInterpreter(model, strategy=overlapping)) != outputs(stock(model))


def test_nothing_below_the_lowest_record_is_written():
    model = dense_chain(SIZES)
    problem = litert_problem_of(model)
    plan = find("best")(problem)
    raised = Plan.of(problem, tuple(offset + 4096 for offset in plan.offsets), "raised")
    interpreter = PlannedInterpreter(model, raised)
    outputs(interpreter)
    assert not interpreter.arena[:4096].any()
    assert interpreter.arena[4096:].any()


def litert_problem_of(model: bytes, *, keep_inputs: bool = False) -> Problem:
    return interpreter_module.probe_arena(model).problem(keep_inputs=keep_inputs)


def test_inputs_are_kept_if_asked_and_else_reused():
    model = dense_chain(SIZES)
    value = np.full((1, SIZES[0]), 7, np.float32)
    kept = {}
    for keep_inputs in (True, False):
        interpreter = planned(model, keep_inputs=keep_inputs)
        (index,) = (each["index"] for each in interpreter.get_input_details())
        interpreter.set_tensor(index, value)
        interpreter.invoke()
        kept[keep_inputs] = np.array_equal(interpreter.get_tensor(index), value)
    assert kept == {True: True, False: False}


def test_it_takes_a_plan_made_before():
    model = dense_chain(SIZES)
    plan = find("no-reuse")(litert_problem_of(model))
    interpreter = PlannedInterpreter(model, plan)
    assert interpreter.plan == plan
    assert outputs(interpreter) == outputs(stock(model))


def test_a_plan_for_another_model_is_refused():
    plan = find("best")(litert_problem_of(dense_chain((8, 8))))
    with pytest.raises(InvalidPlanError):
        PlannedInterpreter(dense_chain(SIZES), plan)


def test_an_overlapping_plan_is_refused():
    model = dense_chain(SIZES)
    plan = find("best")(litert_problem_of(model))
    with pytest.raises(InvalidPlanError):
        PlannedInterpreter(model, replace(plan, offsets=(0,) * len(plan.offsets)))


@pytest.mark.parametrize("wrong", [{}, {"plan": object(), "strategy": find("best")}])
def test_it_needs_either_a_plan_or_a_strategy(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match="either a plan or a strategy"):
        PlannedInterpreter(dense_chain(SIZES), **wrong)


def falls_back(model: bytes, reason: str, strategy: Callable[[Problem], Plan]) -> None:
    with pytest.warns(StockPlacementWarning, match=reason):
        interpreter = PlannedInterpreter(model, strategy=strategy)
    assert interpreter.arena_bytes is None
    assert outputs(interpreter) == outputs(stock(model))


def test_an_unknown_version_falls_back_to_stock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stock_module, "version", lambda _: "99.0.0")
    falls_back(dense_chain(SIZES), "99.0.0 has not been tried", find("best"))


def test_a_structure_that_reads_wrong_falls_back_to_stock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("arenite.runtime.targets.litert.probe.AllocationType", [99])
    falls_back(dense_chain(SIZES), "has an unexpected address", find("best"))


def test_a_model_with_variables_is_refused_by_name_and_runs_in_stock(tmp_path):
    path = tmp_path / "sums.tflite"
    path.write_bytes(running_sum())
    with pytest.raises(UnexpectedRuntimeError, match=r"sums\.tflite: 2 subgraphs"):
        litert_problem(path)
    falls_back(running_sum(), "2 subgraphs", find("best"))


def test_several_subgraphs_fall_back_to_stock():
    model = tiny_tflite(dense_subgraph(SIZES), dense_subgraph(SIZES))
    falls_back(model, "2 subgraphs", find("best"))


def test_a_plan_larger_than_stock_falls_back_to_stock():
    falls_back(dense_chain((32,) * 6), "is smaller than", find("no-reuse"))


def test_a_tensor_that_moves_in_the_first_run_repeats_it_in_stock(monkeypatch: pytest.MonkeyPatch):
    model = dense_chain(SIZES)
    interpreter = planned(model)

    def moved() -> None:
        raise UnexpectedRuntimeError("tensor 1 has moved")

    monkeypatch.setattr(interpreter._placement, "check", moved)
    with pytest.warns(StockPlacementWarning, match="has moved"):
        found = outputs(interpreter)
    assert found == outputs(stock(model))


def test_other_shapes_are_refused():
    with pytest.raises(FixedShapeError):
        planned(dense_chain(SIZES)).resize_tensor_input(0, [2, 48])


def test_a_damaged_model_is_refused(tmp_path: Path):
    path = tmp_path / "m.tflite"
    path.write_bytes(b"no model at all")
    with pytest.raises(UnsupportedModelError, match="rejected by"):
        litert_problem(path)


def test_a_model_without_its_weights_is_refused_when_it_is_run_for_its_shapes(tmp_path: Path):
    model = schema.ModelT.InitFromPackedBuf(tflite_chains()["LSTM"], 0)
    model.buffers[3].data = None  # of the third weights
    packer = flatbuffers.Builder()
    packer.Finish(model.Pack(packer), b"TFL3")
    path = tmp_path / "m.tflite"
    path.write_bytes(packer.Output())
    with pytest.raises(UnsupportedModelError, match=": Input tensor 3 lacks data"):
        litert_problem(path)


def test_without_a_runtime_the_error_names_the_extra(without):
    without("ai_edge_litert", "tflite_runtime")
    with pytest.raises(MissingDependencyError, match=r"arenite\[litert\]"):
        planned(dense_chain(SIZES))


def test_it_outlives_every_name_but_its_own():
    # In a process of its own: freed too early, a callback or a buffer ends it.
    code = """
import gc
from pathlib import Path
from test_litert import dense_chain, outputs, planned, SIZES
interpreter = planned(dense_chain(SIZES))
gc.collect()
junk = [bytearray(4096) for _ in range(1000)]
outputs(interpreter)
interpreter = None
gc.collect()
"""
    paths = [str(Path(__file__).parent), *sys.path]
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {paths}\n{code}"], check=True
    )
