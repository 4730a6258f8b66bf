from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tflite import BuiltinOperator

from arenite.planner.tensors import TensorKind
from arenite.runtime.targets.tflm import (
    InterpreterError,
    TflmExport,
    export_tflm,
    learn_scratch,
    measure_arena,
    measure_bytes,
    read_tflm_model,
)
from arenite.runtime.targets.tflm import export as export_module
from arenite.strategies import find
from support.shared_material import shared
from support.tiny_chains import Main, branching, dense_chain, looping
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

RUNNABLE = (
    "audio_preprocessor_int8",
    "hello_world_float",
    "hello_world_int8",
    "keyword_scrambled",
    "kws_ref_model",
    "micro_speech_quantized",
    "mnist_lstm_float",
    "person_detect",
    "pretrainedResnet",
    "pretrainedResnet_quant",
    "tf2_mobilenet_v2_1.0_224_ptq",
    "vww_96_float",
    "vww_96_int8",
)


real = pytest.mark.usefixtures("interpreter")


def exported(path: Path) -> TflmExport:
    return export_tflm(path, find("best"), find("tflm"))


def model(name: str) -> Path:
    return shared(f"models/tflite/{name}.tflite")


@real
def test_the_interpreter_obeys_our_plan_and_needs_less(chain: Path):
    export = exported(chain)
    assert export.measured is not None
    assert (export.stock_head, export.planned_head, export.stays) == (512, 384, "")
    assert export.measured.stock.total - export.measured.planned.total == 128
    assert export.measured.planned.outputs == export.measured.stock.outputs


@real
@pytest.mark.parametrize(
    ("make", "stock_head", "planned_head"), [(branching, 1040, 768), (looping, 1008, 672)]
)
def test_the_interpreter_obeys_a_plan_of_several_subgraphs(
    tmp_path: Path, make: Callable[[], bytes], stock_head: int, planned_head: int
):
    path = tmp_path / "model.tflite"
    path.write_bytes(make())
    export = exported(path)
    assert export.measured is not None
    assert (export.stock_head, export.planned_head, export.stays) == (stock_head, planned_head, "")
    assert export.measured.planned.outputs == export.measured.stock.outputs


@real
def test_a_plan_that_lays_one_subgraph_over_another_changes_the_outputs(tmp_path: Path):
    path = tmp_path / "model.tflite"
    path.write_bytes(looping())
    model = read_tflm_model(path)
    offsets = [0] * model.file.num_tensors
    for name, tensor in model.program.tensors.items():
        if tensor.kind is TensorKind.CONSTANT:
            offsets[model.tensor_indexes[name]] = -1
    broken = model.file.with_plan(offsets)
    assert measure_bytes(path, broken, 1, 1).outputs != measure_arena(path, 1, 1).outputs


@real
def test_variables_and_their_first_values_are_left_to_the_interpreter(tmp_path: Path):
    path = tmp_path / "model.tflite"
    main = Main("x").variable("s").read("s", "old").step(BuiltinOperator.ADD, "old x", "y")
    path.write_bytes(main.assign("s", "y").model("y", s=[1, 2, 3, 4]))
    export = exported(path)
    assert export.measured is not None
    assert export.planned_head == export.stock_head == 48
    assert export.measured.planned.outputs == export.measured.stock.outputs


@real
def test_where_ours_is_no_gain_the_file_stays_as_it_is(tmp_path: Path):
    path = tmp_path / "even.tflite"
    path.write_bytes(dense_chain((16, 16, 16)))
    export = exported(path)
    assert "B, stock" in export.stays
    assert export.data == path.read_bytes()


@real
def test_a_deliberate_overlap_is_obeyed_too_and_changes_the_outputs(chain: Path):
    offsets = [0] * 4 + [-1] * 3
    broken = read_tflm_model(chain).file.with_plan(offsets)
    assert measure_bytes(chain, broken, 1, 1).outputs != measure_arena(chain, 1, 1).outputs


@real
def test_our_plan_stays_out_when_the_outputs_differ(chain: Path, monkeypatch: pytest.MonkeyPatch):
    def differing(*arguments: object) -> object:
        return replace(measure_bytes(*arguments), outputs="other")  # type: ignore[arg-type]

    monkeypatch.setattr(export_module, "measure_bytes", differing)
    export = exported(chain)
    assert export.stays == "the outputs differ with our plan"
    assert export.data == chain.read_bytes()


@real
def test_a_plan_worse_than_the_stock_one_stays_out(chain: Path):
    export = export_tflm(chain, find("no-reuse"), find("tflm"))
    assert export.stays.startswith("the smallest working arena is")
    assert export.data == chain.read_bytes()


@real
def test_a_model_that_the_interpreter_cannot_run_is_computed_and_says_why(tmp_path: Path):
    path = tmp_path / "unknown.tflite"
    tensors = [TinyTensor("x"), TinyTensor("y")]
    operators = [TinyOperator("NotAKernel", [0], [1])]
    path.write_bytes(tiny_tflite(TinySubgraph(tensors, operators, [0], [1])))
    export = exported(path)
    assert export.measured is None
    assert "op code CUSTOM" in export.not_measured


def test_without_the_package_heads_are_computed(chain: Path, without):
    without("tflite_micro")
    export = exported(chain)
    assert export.measured is None
    assert "arenite[tflm]" in export.not_measured
    assert (export.stock_head, export.planned_head, export.stays) == (512, 384, "")
    assert export.data != chain.read_bytes()


def test_without_the_package_a_plan_that_is_no_gain_stays_out(tmp_path: Path, without):
    without("tflite_micro")
    path = tmp_path / "even.tflite"
    path.write_bytes(dense_chain((16, 16, 16)))
    export = exported(path)
    assert "B, stock" in export.stays
    assert export.data == path.read_bytes()


@real
def test_a_file_that_ends_the_interpreter_does_not_end_us(chain: Path):
    with pytest.raises(InterpreterError):
        measure_bytes(chain, b"\xff" * 1000, 1, 1)


@real
@pytest.mark.parametrize(
    ("name", "heads", "smallest"),
    [
        ("vww_96_int8", (73_728, 55_296), (103_680, 85_248)),
        ("vww_96_float", (294_912, 221_184), (324_800, 251_072)),
    ],
)
def test_visual_wake_words_need_a_quarter_less(
    name: str, heads: tuple[int, int], smallest: tuple[int, int]
):
    export = exported(model(name))
    assert export.measured is not None
    assert (export.stock_head, export.planned_head) == heads
    assert (export.measured.stock.smallest, export.measured.planned.smallest) == smallest


@real
@pytest.mark.parametrize("name", RUNNABLE)
def test_our_plan_is_never_worse_than_the_stock_one(name: str):
    export = exported(model(name))
    assert export.measured is not None, export.not_measured
    stock, planned = export.measured.stock, export.measured.planned
    assert planned.outputs == stock.outputs
    assert planned.head == export.plan.height
    assert planned.total <= stock.total
    assert planned.smallest <= stock.smallest


@real
@pytest.mark.parametrize(
    ("name", "scratch"),
    [("keyword_scrambled", {"SVDF_1": 512}), ("audio_preprocessor_int8", {"SignalRfft_3": 1024})],
)
def test_kernel_scratch_is_learnt_from_the_interpreter(name: str, scratch: dict[str, int]):
    assert scratch.items() <= learn_scratch(read_tflm_model(model(name))).items()


@real
def test_planning_for_scratch_pays(monkeypatch: pytest.MonkeyPatch):
    path = model("keyword_scrambled")
    monkeypatch.setattr(export_module, "learn_scratch", lambda _: {})
    blind = exported(path).measured
    monkeypatch.undo()
    assert blind is not None
    assert blind.planned.head > exported(path).planned_head
