"""Whole networks as C: bits, overlaps, and the models that lie beside the checkout."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.targets.c import ALIASES, ALIGNMENT
from arenite.planner.importers import load
from arenite.planner.programs.rules import AliasKind, Rules
from arenite.planner.rewrites.derivation import derive
from arenite.runtime.cexport.lowering import lower_for_c
from support.exported_c import (
    Machine,
    Micro,
    Ours,
    assert_same_bits,
    best_order,
    compiled,
    drawn,
    exported,
)
from support.quantised_chain import mobile, residual
from support.shared_material import shared
from support.tflite_networks import encoder
from support.tflite_operator import Reference
from support.tiny_onnx import parse, save

DIGITS = Path(__file__).parents[3] / "assets" / "digits-lenet-5.onnx"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("network", [mobile, residual, partial(encoder, "int8")])
def test_a_network_agrees_with_tensorflow_lite_micro_to_the_bit(
    network: Callable[[int], bytes], seed: int, tmp_path: Path
) -> None:
    path = tmp_path / "network.tflite"
    path.write_bytes(network(seed))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    assert assert_same_bits(machine, Micro(path), 10) > 1


def test_results_reach_into_operands_where_that_takes_less_than_any_other_plan(
    tmp_path: Path,
) -> None:
    path = tmp_path / "network.tflite"
    path.write_bytes(mobile())
    apart = Rules(tuple(kind for kind in ALIASES if kind is not AliasKind.OVERLAP),
                  alignment=ALIGNMENT)  # fmt: skip
    least = derive(lower_for_c(load(path, weights=True)), apart).problem.lower_bound
    assert exported(path).arena_bytes < least


def in_tables(text: str) -> str:
    """Return the source with a table of offsets in the place of every stride."""
    text = text.replace("#define ROW_TABLES 0", "#define ROW_TABLES 1")
    rows = re.compile(r"(IN|OUT)_ROWS\((.*?), (\d+)\);")

    def tabled(found: re.Match[str]) -> str:
        kind, base, stride = found.groups()
        return f"{kind.lower()}_rows_at({base}, table_{stride});"

    strides = {found[3] for found in rows.finditer(text)}
    tables = [
        f"static const int32_t table_{stride}[99] = "
        f"{{{', '.join(str(n * int(stride)) for n in range(99))}}};"
        for stride in sorted(strides)
    ]
    before, run, after = rows.sub(tabled, text).partition("int network_run(")
    return before + "\n".join(tables) + "\n" + run + after


def in_parts(text: str) -> str:
    """Return the source with every call of a kernel made in two, of the first rows and others."""
    call = re.compile(r"(\w+\(&step_.*), 0, (\d+)\);")
    return call.sub(r"\1, 0, \2 / 3); \1, \2 / 3, \2);", text)


@pytest.mark.parametrize("changed", [in_tables, in_parts])
@pytest.mark.parametrize("network", [mobile, residual])
def test_rows_may_lie_anywhere_and_be_made_in_parts(
    network: Callable[[], bytes], changed: Callable[[str], str], tmp_path: Path
) -> None:
    path = tmp_path / "network.tflite"
    path.write_bytes(network())
    export = exported(path)
    text = export.files["network.c"].decode()
    assert changed(text) != text
    other = replace(export, files={**export.files, "network.c": changed(text).encode()})
    machines = [
        Machine.of(each, compiled(each, tmp_path / str(n)))
        for n, each in enumerate((export, other))
    ]
    inputs = drawn(export, 0)
    (one,), (two,) = (machine.run(inputs).values() for machine in machines)
    np.testing.assert_array_equal(one, two)


def test_an_lstm_keeps_the_states_of_tensorflow_lite_micro_from_run_to_run(tmp_path: Path) -> None:
    path = shared("models/tflite/dtln_noise_suppression.tflite")
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    oracle = Micro(path)
    for seed in range(8):
        inputs = drawn(export, seed)
        (expected,) = oracle.run(list(inputs.values()))
        (found,) = machine.run(inputs).values()
        np.testing.assert_array_equal(found, expected)


def test_two_arenas_are_two_instances(tmp_path: Path) -> None:
    path = tmp_path / "network.tflite"
    path.write_bytes(mobile())
    export = exported(path)
    library = compiled(export, tmp_path / "c")
    one, other = Machine.of(export, library), Machine.of(export, library)
    results = [machine.run(drawn(export, 1)) for machine in (one, other, one)]
    for result in results[1:]:
        for name, array in result.items():
            np.testing.assert_array_equal(array, results[0][name])


@pytest.mark.parametrize("axes", ["[3]", "[2,3]", "[1]"])
def test_means_divide_as_our_runtime_does(axes: str, tmp_path: Path) -> None:
    path = save(tmp_path, parse(f"(float[1,3,6,7] x) => (y) {{ y = ReduceMean<axes={axes}>(x) }}"))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c"))
    values = np.random.default_rng(0).integers(-99, 99, (1, 3, 6, 7)).astype(np.float32)
    (expected,) = Ours(path).run([values])
    (found,) = machine.run({"x": values}).values()
    np.testing.assert_array_equal(found, expected)


GRAPHS = {
    "a sum that repeats along three axes": "(float[2,1,3,1,5] x, float[1,4,3,6,1] z) => (y) "
    "{a = Neg(x) b = Neg(z) c = Add(a, b) y = Mul(c, z)}",
    "a choice that repeats along four axes": "(float[2,1,3,1,5] x, float[1,4,1,6,1] z) => (y) "
    "<float l = {0.25}> {c = Less(x, l) y = Where(c, x, z)}",
    "a product that repeats along three axes": "(float[2,1,3,2,5] x, float[1,4,3,5,2] z) => (y) "
    "{a = Neg(x) y = MatMul(a, z)}",
    "constant outputs": "(float[2] x) => (y, z, v) <float[2] w = {1, 2}, int64[1] s = {2}> "
    "{y = Relu(x) z = Identity(w) v = Reshape(w, s)}",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_an_onnx_graph_agrees_with_our_runtime(name: str, tmp_path: Path) -> None:
    path = save(tmp_path, parse(GRAPHS[name]))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    inputs = drawn(export, 0)
    for expected, found in zip(
        Ours(path).run(list(inputs.values())), machine.run(inputs).values(), strict=True
    ):
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6)


def test_bytes_that_repeat_along_three_axes_agree_with_our_runtime(tmp_path: Path) -> None:
    graph = (
        "(float[2,1,3,1,5] x, float[1,4,3,6,1] z) => (y) <float s = {0.05}, int8 o = {3}> {"
        "a = QuantizeLinear(x, s, o) b = DequantizeLinear(a, s, o) "
        "c = QuantizeLinear(z, s, o) d = DequantizeLinear(c, s, o) "
        "e = Add(b, d) f = QuantizeLinear(e, s, o) y = DequantizeLinear(f, s, o)}"
    )
    path = save(tmp_path, parse(graph, opset=13))
    export = exported(path, rounding="even")
    assert "add_even_s8" in export.kernels
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    inputs = drawn(export, 0)
    (expected,) = Ours(path).run(list(inputs.values()))
    (found,) = machine.run(inputs).values()
    np.testing.assert_array_equal(found, expected)


def test_a_network_of_floats_agrees_with_onnx_runtime(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    export = exported(DIGITS, order=best_order())
    machine = Machine.of(export, compiled(export, tmp_path, "-fsanitize=undefined"))
    session = onnxruntime.InferenceSession(str(DIGITS), providers=["CPUExecutionProvider"])
    for seed in range(3):
        inputs = drawn(export, seed)
        (port,) = export.interface.inputs
        given = inputs[port.port.name]
        if port.port.axes is not None:
            given = np.ascontiguousarray(given.transpose(np.argsort(port.port.axes)))
        (expected,) = session.run(None, {port.port.name: given})
        (found,) = machine.run(inputs).values()
        np.testing.assert_allclose(found.reshape(expected.shape), expected, 1e-4, 1e-4)


MODELS = {
    "vww_96_int8": (Micro, 46_080),
    "kws_ref_model": (Micro, 9_848),
    "pretrainedResnet_quant": (Micro, 33_312),
    "person_detect": (Micro, 46_480),
    "micro_speech_quantized": (Micro, 4_164),
    "mww_okay_nabu": (Micro, 5_392),
    "te_vww": (Micro, 96_000),
    "mobilenet_v1_0.5_160_quant": (Reference, 206_604),
    "tf2_mobilenet_v2_1.0_224_ptq": (Micro, 1_279_488),
}
"""What each is compared with, and the most bytes its arena may take."""


@pytest.mark.parametrize("name", MODELS)
def test_a_published_model_agrees_to_the_bit_within_its_arena(name: str, tmp_path: Path) -> None:
    path = shared(f"models/tflite/{name}.tflite")
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    reference, most = MODELS[name]
    try:
        export = exported(path, order=best_order())
    except Exception as error:
        if "order" not in str(error):
            raise
        export = exported(path)
    assert export.arena_bytes <= most
    machine = Machine.of(export, compiled(export, tmp_path, "-O2"))
    oracle = reference(path)
    for seed in range(2 if most > 90_000 else 10):
        inputs = drawn(export, seed)
        (expected,) = oracle.run(list(inputs.values()))
        (found,) = machine.run(inputs).values()
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)
