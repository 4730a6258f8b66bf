"""Models without an export as C are refused by name, all reasons at once; damaged ones by ours."""

import random
from pathlib import Path

import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.c import compile_for_c
from arenite.planner.errors import AreniteError
from arenite.runtime.cexport.base.errors import NotExportedError
from arenite.runtime.cexport.base.options import COptions
from arenite.runtime.cexport.export import export_c
from arenite.strategies import find
from support.exported_c import compiled, exported
from support.quantised_chain import mobile, residual
from support.tflite_layers import integer_lstm
from support.tflite_operator import Given, operator_model
from support.tiny_onnx import parse, save


def refusal(data: bytes, folder: Path) -> NotExportedError:
    path = folder / "model.tflite"
    path.write_bytes(data)
    with pytest.raises(NotExportedError) as caught:
        exported(path)
    return caught.value


def test_an_operator_without_a_kernel_is_named(tmp_path: Path) -> None:
    image, options = Given((1, 2, 3, 4)), ("LocalResponseNormalizationOptions", {"radius": 1})
    data = operator_model("LOCAL_RESPONSE_NORMALIZATION", [image], [image], options)
    error = refusal(data, tmp_path)
    ((name, kind, reason),) = error.steps
    assert kind == "LocalResponseNorm"
    assert repr(name) in str(error)
    assert reason in str(error)
    assert "nothing was written" in str(error)


def test_a_type_without_a_kernel_is_named(tmp_path: Path) -> None:
    tensors = [Given((2, 4), "int32") for _ in range(3)]
    error = refusal(operator_model("DIV", tensors[:2], tensors[2:], ("DivOptions", {})), tmp_path)
    expected = "function=divide of int32 and int32 to int32 is unsupported"
    assert error.steps[0][1:] == ("Binary", expected)


def test_bytes_without_scale_are_refused(tmp_path: Path) -> None:
    tensors = [Given((2, 4), "int8") for _ in range(3)]
    error = refusal(operator_model("ADD", tensors[:2], tensors[2:], ("AddOptions", {})), tmp_path)
    assert "has no scales" in error.steps[0][2]


def test_many_refusals_are_told_in_short() -> None:
    error = NotExportedError([(f"step{n}", "Gather", "there is no kernel") for n in range(11)])
    assert "and 3 more" in str(error)
    assert len(error.steps) == 11


def test_a_name_cannot_end_the_comment_it_stands_in(tmp_path: Path) -> None:
    model = parse("(float[2] x) => (y) { y = Relu(x) }")
    for value in (model.graph.input[0], model.graph.output[0]):
        value.name += "*/ int evil; /*\u202e"
    model.graph.node[0].input[0], model.graph.node[0].output[0] = (
        model.graph.input[0].name, model.graph.output[0].name,
    )  # fmt: skip
    model.graph.node[0].name = "*/ int bad; /*"
    export = exported(save(tmp_path, model))
    compiled(export, tmp_path / "c")
    text = b"".join(export.files.values()).decode()
    assert "*/ int" not in text
    assert text.isascii()


def test_a_tensor_beyond_32_bits_is_refused_and_overlaps_of_large_ones_are_not_searched(
    tmp_path: Path,
) -> None:
    text = "(float[1, 1, N, N] x) => (y) { y = MaxPool<kernel_shape=[2, 2]>(x) }"
    path = save(tmp_path, parse(text))
    with pytest.raises(NotExportedError, match="beyond 32 bits"):
        compile_for_c(path, Reading(dims={"N": 30_000}))
    for size, has_overlap in ((5_000, False), (100, True)):
        source = compile_for_c(path, Reading(dims={"N": size})).source
        apart = 4 * (size**2 + (size - 1) ** 2)
        assert (source.problem.lower_bound < apart) == has_overlap


MODELS = {"mobile": mobile, "residual": residual, "lstm": integer_lstm}
VALUES = (0, 1, 127, 128, 255)


@pytest.mark.parametrize("name", MODELS)
def test_bytes_that_are_changed_lead_to_no_other_error(name: str, tmp_path: Path) -> None:
    data, source = MODELS[name](), random.Random(4)
    path = tmp_path / "model.tflite"
    outcomes = set()
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(source.choice((1, 2))):
            damaged[source.randrange(len(data))] = source.choice(VALUES)
        path.write_bytes(damaged)
        try:
            model = compile_for_c(path)
            export_c(model, find("greedy-by-size")(model.source.problem), COptions())
        except AreniteError:
            outcomes.add("refused")
        else:
            outcomes.add("exported")
    assert outcomes == {"refused", "exported"}
