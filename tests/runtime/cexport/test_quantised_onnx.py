"""ONNX networks with quantised numbers as C, beside ONNX Runtime."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.session import Session
from arenite.strategies import find
from support.command import main
from support.exported_c import Machine, compiled, drawn, exported
from support.quantised_onnx import FORMS, assert_within_few_quanta, outputs_of, quantised
from support.shared_material import shared
from support.tiny_onnx import parse, save


@pytest.mark.parametrize("form", FORMS)
def test_a_quantised_network_gives_what_onnx_runtime_gives_within_few_quanta(
    form: str, tmp_path: Path
) -> None:
    path = quantised(tmp_path, FORMS[form])
    export = exported(path)
    assert {"conv_s8", "conv_pairs_s8"}.intersection(export.kernels)
    assert main(["export", str(path), "--to", "c", "-o", str(tmp_path / "made")]) == 0
    done = subprocess.run(["make", "-C", tmp_path / "made", "check"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    inputs = drawn(export, 1)
    (expected,) = outputs_of(path, export.interface, inputs)
    (found,) = machine.run(inputs).values()
    assert_within_few_quanta(found, expected)


def assert_as_our_runtime(path: Path, folder: Path) -> None:
    """Check that integers are equal and floats within 1e-5 of the scale, over several runs."""
    export = exported(path)
    machine = Machine.of(export, compiled(export, folder, "-fsanitize=undefined"))
    with Session(path, strategy=find("greedy-by-size")) as session:
        for seed in range(8):
            inputs = drawn(export, seed)
            given = {}
            for port in export.interface.inputs:
                array, axes = inputs[port.port.name], port.port.axes
                given[port.port.name] = (
                    array if axes is None else np.ascontiguousarray(array.transpose(axes_of(axes)))
                )
            expected = session.run(given)
            for port in export.interface.outputs:
                found = machine.run(inputs)[port.port.name]
                array, axes = expected[port.port.name], port.port.axes
                array = (array if axes is None else array.transpose(axes)).reshape(found.shape)
                share = 1e-5 if array.dtype.kind == "f" else 0.0
                error = np.abs(found.astype(float) - array.astype(float)).max()
                assert error <= share * np.abs(array).max()


def axes_of(axes: tuple[int, ...]) -> list[int]:
    return [int(each) for each in np.argsort(axes)]


@pytest.mark.parametrize("form", FORMS)
def test_a_quantised_network_gives_what_our_runtime_gives(form: str, tmp_path: Path) -> None:
    assert_as_our_runtime(quantised(tmp_path, FORMS[form]), tmp_path / "c")


def test_a_table_has_the_bytes_of_our_runtime_where_its_function_lies_between_two(
    tmp_path: Path,
) -> None:
    """The tangent of 47 steps is 104.500005 of the result's, and 104.5 in 32-bit floats."""
    model = parse(
        "(int8[256] x) => (int8[256] y) <float s = {0.02434928156}, int8 z = {10}, "
        "float r = {0.00780761521}, int8 o = {0}> {"
        "a = DequantizeLinear(x, s, z) b = Tanh(a) y = QuantizeLinear(b, r, o)}"
    )
    assert_as_our_runtime(save(tmp_path, model), tmp_path / "c")


def test_pixels_halfway_between_two_bytes_have_those_of_our_runtime(tmp_path: Path) -> None:
    model = parse(
        "(int8[1,4,9,9] x) => (int8[1,4,18,18] y) <float s = {0.007855316624}, int8 z = {-115}, "
        "float[4] twice = {1.0, 1.0, 2.0, 2.0}> { a = DequantizeLinear(x, s, z) "
        'b = Resize<mode="linear", coordinate_transformation_mode="asymmetric">(a, , twice) '
        "y = QuantizeLinear(b, s, z)}"
    )
    assert_as_our_runtime(save(tmp_path, model), tmp_path / "c")


def test_a_published_network_gives_what_our_runtime_gives(tmp_path: Path) -> None:
    path = shared("models/onnx/mlt_kws_ref_model.onnx")
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    assert_as_our_runtime(path, tmp_path / "c")


def test_rounding_twice_is_there_for_onnx_too(tmp_path: Path) -> None:
    path = quantised(tmp_path, FORMS["qdq, signed"])
    assert exported(path).rounding == "even"
    twice = exported(path, rounding="double")
    assert b"#define HALVES_TO_EVEN 0" in twice.files["quantised.c"]
