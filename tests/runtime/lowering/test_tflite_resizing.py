"""Inputs of other shapes, where the signature leaves them open: as LiteRT resizes and computes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")
pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")

from ai_edge_litert import interpreter

import arenite
from arenite.pipeline.base.reading import Reading
from arenite.planner.errors import BindingError
from arenite.planner.importers import load
from arenite.planner.sizes import Dimension
from arenite.runtime import Session
from support.running import build
from support.shared_material import shared
from support.tflite_operator import Given, operator_model, weights
from support.tiny_signals import framed
from support.tiny_tflite import tiny_tflite

IMAGE = (1, 8, 8, 4)
RNG = np.random.default_rng(0)


def numbers(*shape: int) -> Given:
    return weights(RNG.normal(size=shape).astype(np.float32))


def integers(*values: int) -> Given:
    return weights(np.array(values, np.int32))


def of_window(kind: str, **options: int) -> tuple[str, Mapping[str, object]]:
    return kind, {"strideH": 2, "strideW": 1, **options}


SAME, VALID = 0, 1
FILTER = {"dilationHFactor": 1, "dilationWFactor": 2}
POOL = {"filterHeight": 3, "filterWidth": 2}
OPERATORS: Mapping[str, tuple[str, Sequence[Given], Sequence[int], Any]] = {
    "ADD": ("ADD", [numbers(1, 1, 1, 4)], IMAGE, ("AddOptions", {})),
    "CONV_2D, SAME": (
        "CONV_2D", [numbers(5, 3, 3, 4), numbers(5)], (1, 4, 8, 5),
        of_window("Conv2DOptions", padding=SAME, **FILTER),
    ),
    "CONV_2D, VALID": (
        "CONV_2D", [numbers(5, 3, 3, 4), numbers(5)], (1, 3, 4, 5),
        of_window("Conv2DOptions", padding=VALID, **FILTER),
    ),
    "DEPTHWISE_CONV_2D": (
        "DEPTHWISE_CONV_2D", [numbers(1, 3, 3, 4), numbers(4)], (1, 4, 8, 4),
        ("DepthwiseConv2DOptions",
         {"strideH": 2, "strideW": 1, "depthMultiplier": 1, "padding": SAME,
          "dilationHFactor": 1, "dilationWFactor": 1}),
    ),
    "AVERAGE_POOL_2D": (
        "AVERAGE_POOL_2D", [], (1, 4, 8, 4), of_window("Pool2DOptions", padding=SAME, **POOL),
    ),
    "MAX_POOL_2D": (
        "MAX_POOL_2D", [], (1, 3, 7, 4), of_window("Pool2DOptions", padding=VALID, **POOL),
    ),
    "PAD": ("PAD", [weights(np.array([[0, 0], [1, 2], [3, 0], [0, 0]], np.int32))],
            (1, 11, 11, 4), ("PadOptions", {})),
    "MEAN": ("MEAN", [integers(1, 2)], (1, 4), ("ReducerOptions", {"keepDims": False})),
    "SUM": ("SUM", [integers(-3)], (1, 1, 8, 4), ("ReducerOptions", {"keepDims": True})),
    "TRANSPOSE": ("TRANSPOSE", [integers(0, 3, 1, 2)], (1, 4, 8, 8), ("TransposeOptions", {})),
    "RESHAPE": ("RESHAPE", [integers(-1, 16)], (16, 16), ("ReshapeOptions", {})),
    "SPACE_TO_DEPTH": (
        "SPACE_TO_DEPTH", [], (1, 4, 4, 16), ("SpaceToDepthOptions", {"blockSize": 2}),
    ),
    "DEPTH_TO_SPACE": (
        "DEPTH_TO_SPACE", [], (1, 16, 16, 1), ("DepthToSpaceOptions", {"blockSize": 2}),
    ),
    "STRIDED_SLICE": (
        "STRIDED_SLICE", [integers(0, 1, 0, 0), integers(0, 0, 4, 4), integers(1, 2, 1, 1)],
        (1, 4, 4, 4), ("StridedSliceOptions", {"beginMask": 1, "endMask": 3}),
    ),
    "SLICE": ("SLICE", [integers(0, 1, 0, 0), integers(1, 3, 8, 2)], (1, 3, 8, 2),
              ("SliceOptions", {})),
    "RESIZE_BILINEAR": (
        "RESIZE_BILINEAR", [integers(5, 6)], (1, 5, 6, 4), ("ResizeBilinearOptions", {}),
    ),
    "SOFTMAX": ("SOFTMAX", [], IMAGE, ("SoftmaxOptions", {"beta": 1.0})),
    "FULLY_CONNECTED": (
        "FULLY_CONNECTED", [numbers(3, 4), numbers(3)], (64, 3), ("FullyConnectedOptions", {}),
    ),
    "FULLY_CONNECTED, rank kept": (
        "FULLY_CONNECTED", [numbers(3, 4), numbers(3)], (1, 8, 8, 3),
        ("FullyConnectedOptions", {"keepNumDims": True}),
    ),
    "EXPAND_DIMS": ("EXPAND_DIMS", [integers(1)], (1, 1, 8, 8, 4), ("ExpandDimsOptions", {})),
}  # fmt: skip


def open_model(name: str) -> bytes:
    code, constants, result, options = OPERATORS[name]
    open_image = Given(IMAGE, signature=(-1, -1, -1, 4))
    return operator_model(code, [open_image, *constants], [Given(result)], options)


def resized_by_litert(path: Path, array: np.ndarray) -> list[np.ndarray]:
    kind = interpreter.OpResolverType.BUILTIN_REF
    found = interpreter.Interpreter(str(path), experimental_op_resolver_type=kind)
    (detail,) = found.get_input_details()
    found.resize_tensor_input(detail["index"], array.shape)
    found.allocate_tensors()
    found.set_tensor(detail["index"], array)
    found.invoke()
    return [found.get_tensor(each["index"]) for each in found.get_output_details()]


def compare(path: Path, folder: Path, shape: Sequence[int], atol: float = 1e-5) -> None:
    port = load(path).inputs[0].name
    detail = interpreter.Interpreter(str(path)).get_input_details()[0]
    array = np.random.default_rng(1).normal(size=shape)
    array = (array * 40 if detail["dtype"] == np.int8 else array).astype(detail["dtype"])
    expected = resized_by_litert(path, array)
    with Session(build(path, folder, reading=Reading(shapes={port: tuple(shape)}))) as session:
        found = list(session.run({port: array}).values())
    for own, other in zip(found, expected, strict=True):
        assert own.shape == other.shape
        np.testing.assert_allclose(own, other, rtol=0, atol=atol)


@pytest.mark.parametrize("shape", [(2, 8, 8, 4), (1, 14, 10, 4), IMAGE])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_gives_its_output_the_shape_that_litert_gives_it(
    tmp_path: Path, name: str, shape: Sequence[int]
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(open_model(name))
    compare(path, tmp_path, shape)


@pytest.mark.parametrize(
    ("name", "shape", "atol"),
    [
        ("kws_ref_model", (2, 49, 10, 1), 0),
        ("pretrainedResnet", (3, 32, 32, 3), 1e-5),
        ("ultraface_rfb320", (2, 240, 320, 3), 1e-4),
        ("vww_96_int8", (2, 96, 96, 3), 0),
    ],
)
def test_networks_run_on_larger_batches(
    tmp_path: Path, name: str, shape: Sequence[int], atol: float
) -> None:
    path = shared(f"models/tflite/{name}.tflite")
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    compare(path, tmp_path, shape, atol)


def test_what_an_operator_does_not_take_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(open_model("CONV_2D, VALID"))
    with pytest.raises(BindingError, match=r"'t0' cannot .* CONV_2D_0: window is larger"):
        load(path, shapes={"t0": (1, 2, 2, 4)})
    with pytest.raises(BindingError, match="'t0' cannot have the length 0"):
        load(path, shapes={"t0": (0, 8, 8, 4)})
    path.write_bytes(open_model("RESHAPE"))
    with pytest.raises(BindingError, match=r"RESHAPE_0: .* to \(-1, 16\)"):
        load(path, shapes={"t0": (1, 1, 1, 4)})


def test_frames_of_a_tflite_model_are_right_for_each_length(tmp_path: Path) -> None:
    subgraph = framed(40)
    subgraph.tensors[0] = replace(subgraph.tensors[0], signature=(1, -1))
    path, program = tmp_path / "model.tflite", tmp_path / "program.arena"
    path.write_bytes(tiny_tflite(subgraph))
    arenite.build(path, program, shapes={"x": (1, Dimension("n", 8, 40, 4))})
    session = Session(program)
    for length in (8, 20, 40):
        feeds = {"x": np.random.default_rng(0).standard_normal((1, length)).astype(np.float32)}
        expected = arenite.Session(path, shapes={"x": (1, length)}).run(feeds)
        (found,) = session.run(feeds).values()
        np.testing.assert_array_equal(found, *expected.values())
