"""A model read once for a range of sizes is the model read for each size."""

import math
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from arenite.planner.errors import BindingError, ModelError, SizeError
from arenite.planner.importers import load
from arenite.planner.importers.onnx import TensorType, numpy_dtype
from arenite.planner.importers.onnx.moved_lengths import slice_length
from arenite.planner.importers.onnx.node import Operand, input_name, single_node_model
from arenite.planner.importers.onnx.sized import number_at
from arenite.planner.programs.program import Array, Program
from arenite.planner.sizes import Dimension, Expression, Ranges, at, depends, same
from arenite.planner.tensors import DType, TensorKind
from support.shared_material import shared
from support.sized_graphs import (
    DATA,
    NOT_COMPUTED,
    RULES,
    M,
    N,
    dimensions_of,
    drawn,
    points,
    random_chain,
)
from support.tiny_onnx import parse, read_text, save, with_random_weights


def assert_same_at_each_size(ranged: Program, fixed: list[tuple[dict[str, int], Program]]) -> None:
    """Compare the shapes of all tensors; those read for one size only may be folded away."""
    for sizes, program in fixed:
        common = ranged.tensors.keys() & program.tensors.keys()
        assert {*program.output_tensors, *program.input_tensors} <= common
        for name in common:
            shape = tuple(at(length, sizes) for length in ranged.tensors[name].shape)
            assert shape == program.tensors[name].shape, (name, sizes)
            assert ranged.tensors[name].dtype is program.tensors[name].dtype


def read_at(folder: Path, text: str, dims: dict[str, Dimension]) -> None:
    text = text.replace("float[12,4] w", f"float[12,4] w = {{{', '.join(['1'] * 48)}}}")
    ranged = read_text(folder, text, dims=dims)
    inputs = [ranged.tensors[name].shape for name in ranged.input_tensors]
    assert any(depends(length) for shape in inputs for length in shape)
    fixed = [(p, read_text(folder, text, dims=p)) for p in points(tuple(dims.values()))]
    assert_same_at_each_size(ranged, fixed)
    assert {*ranged.dimensions} == {*dims.values()}


@pytest.mark.parametrize("text", RULES.values(), ids=RULES)
def test_each_operator_has_lengths_for_all_sizes(text: str, tmp_path: Path) -> None:
    read_at(tmp_path, text, dimensions_of(text))


def arrays_at(ranged: Program, sizes: dict[str, int], feeds: dict[str, Array]) -> dict[str, Array]:
    """Compute all tensors of a program at some sizes, step by step.

    Of a constant whose lengths depend on dimensions the first bytes are used.
    """
    found = dict(feeds)
    for name, tensor in ranged.tensors.items():
        if tensor.kind is TensorKind.CONSTANT:
            dtype, array = numpy_dtype(tensor.dtype), ranged.constants[name]
            shape = tuple(at(length, sizes) for length in tensor.shape)
            if array.dtype == object:
                array = np.array([number_at(each, sizes) for each in array.flat], dtype)
            found[name] = array.ravel()[: math.prod(shape)].reshape(shape)
    for step in ranged.steps:
        origin = step.operator.origin
        operands = [Operand(name, type_of(found[name]) if name else None) for name in step.inputs]
        model = single_node_model(origin.node, origin.dialect, operands, {})
        given = {input_name(p): found[name] for p, name in enumerate(step.inputs) if name}
        results = ReferenceEvaluator(model).run(None, given)
        found.update(zip(filter(None, step.outputs), map(np.asarray, results), strict=True))
    return found


def type_of(array: Array) -> TensorType:
    dtype = next(each for each in DType if each.label == array.dtype.name)
    return TensorType(dtype, array.shape)


@pytest.mark.parametrize("case", [*DATA, *(each for each in RULES if each not in NOT_COMPUTED)])
def test_values_are_those_of_each_size(case: str, tmp_path: Path) -> None:
    text = {**RULES, **DATA}[case]
    dims = dimensions_of(text)
    model = with_random_weights(parse(text))
    assert_right_at_each_size(model, save(tmp_path, model), dims)


def assert_right_at_each_size(
    model: onnx.ModelProto, path: Path, dims: dict[str, Dimension]
) -> None:
    generator = np.random.default_rng(0)
    ranged = load(path, dims=dims, weights=True)
    for sizes in points(tuple(dims.values())):
        feeds = {
            name: drawn(generator, ranged.tensors[name], sizes) for name in ranged.input_tensors
        }
        found = arrays_at(ranged, sizes, feeds)
        expected = ReferenceEvaluator(model).run(None, feeds)
        for name, array in zip(ranged.output_tensors, expected, strict=True):
            np.testing.assert_array_equal(found[name], array)


def test_lengths_equal_at_the_highest_sizes_alone_share_nothing(tmp_path: Path) -> None:
    text = """(float[n,4] x, float[m,4] z) => (float[a,4] y)
        <int64[1] k = {0}, int64[1] one = {1}> {
        s = Shape(z) e = Slice(s, k, one) t = Slice(x, k, e, k) y = Relu(t) }"""
    program = read_text(tmp_path, text, dims={"n": N, "m": Dimension("m", 1, 9)})
    assert program.tensors["t"].alias is None
    assert read_text(tmp_path, text, dims={"n": 9, "m": 9}).tensors["t"].alias is not None


@pytest.mark.parametrize("seed", range(60))
def test_random_chains_are_those_of_each_size(seed: int, tmp_path: Path) -> None:
    model = with_random_weights(parse(random_chain(random.Random(seed))))
    path = save(tmp_path, model)
    dims = {"n": Dimension("n", 12, 33), "m": Dimension("m", 9, 41, 4)}
    assert_right_at_each_size(model, path, dims)


REFUSED = {
    "one length for two": (
        "(float[n,4] x, float[m,4] z) => (float[n,4] y) { y = Add(x, z) }",
        {"n": N, "m": Dimension("m", 5, 9)},
        r"operator 'Add_0' \(Add\): lengths n and m are equal at some sizes only",
    ),
    "a length of the export": (
        "(float[n,4] x) => (float[9,4] y) <int64[2] s = {9, 4}> { y = Reshape(x, s) }",
        {"n": N},
        r"\(Reshape\): it makes 36 elements of 4\*n, as is possible at some sizes only",
    ),
    "another scale at each size": (
        "(float[1,1,n,4] x) => (float[1,1,12,4] y) <int64[4] s = {1, 1, 12, 4}> "
        "{ y = Resize(x, , , s) }",
        {"n": N},
        "its scale, 12 to n, is not the same at all sizes",
    ),
    "a filter that does not fit": (
        "(float[1,1,n] x, float[1,1,3] w) => (float[1,1,a] y) { y = Conv(x, w) }",
        {"n": N},
        r"'Conv_0' \(Conv\): a window of 3 does not fit into the length n, which may be 1",
    ),
    "no rule": (
        "(float[n,4,1] x) => (float[n,4,2] y) { y = DFT<axis=1>(x) }",
        {"n": N},
        r"operator 'DFT_0' \(DFT\): no rule for the lengths of its results",
    ),
    "a broadcast that the highest size allows": (
        "(float[n,4] x, float[9,4] z) => (float[9,4] y) { y = Add(x, z) }",
        {"n": N},
        "lengths n and 9 are equal at some sizes only",
    ),
}


@pytest.mark.parametrize(("text", "dims", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_known_for_all_sizes_is_named(
    text: str, dims: dict[str, Dimension], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(SizeError, match=reason):
        read_text(tmp_path, text, dims=dims)


TWO = "(float[n,k] x, float[k] b) => (float[n,k] y) { y = Add(x, b) }"


def test_dimensions_are_those_in_use_in_order(tmp_path: Path) -> None:
    path = save(tmp_path, parse(TWO))
    program = load(path, shapes={"x": (Dimension("x:0", 1, 4), Dimension("width", 2, 6, 2))})
    assert [*map(str, program.dimensions)] == ["n=1..4", "width=2..6:2"]
    assert load(path, dims={"n": 3, "k": Dimension("k", 2, 2)}).dimensions == ()


def test_an_axis_without_a_name_goes_by_its_input(tmp_path: Path) -> None:
    model = parse("(float[n,4] x) => (float[n,4] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    path = save(tmp_path, model)
    for options in ({"shapes": {"x": (Dimension("", 1, 4), 4)}},
                    {"dims": {"x:0": Dimension("x:0", 1, 4)}}):  # fmt: skip
        program = load(path, **options)
        assert program.dimensions == (Dimension("x:0", 1, 4),)


def test_one_name_ties_lengths(tmp_path: Path) -> None:
    side = Dimension("side", 2, 6)
    program = load(save(tmp_path, parse(TWO)), dims={"n": side, "k": side})
    assert program.dimensions == (side,)
    assert [at(each, {"side": 3}) for each in program.tensors["y"].shape] == [3, 3]


TIED = {
    "initial state": "(float[1,n,4] x, float[1,m,3] h) => (float[1,1,n,3] y) "
    "<float[1,9,4] w, float[1,9,3] r> { y = GRU<hidden_size=3>(x, w, r, , , h) }",
    "boxes and scores": "(float[1,n,4] b, float[1,2,m] s) => (int64[a,3] y) <int64 k = {4}> "
    "{ y = NonMaxSuppression(b, s, k) }",
    "sum": "(float[n,4] x, float[m,4] z) => (float[n,4] y) { y = Add(x, z) }",
    "parts": "(float[n,4] x, float[m,4] z) => (float[n,8] y) { y = Concat<axis=1>(x, z) }",
    "product": "(float[4,n] x, float[m,4] z) => (float[4,4] y) { y = MatMul(x, z) }",
}


@pytest.mark.parametrize("text", TIED.values(), ids=TIED)
def test_lengths_that_an_operator_requires_to_be_equal_are_tied(text: str, tmp_path: Path) -> None:
    dims = {"n": Dimension("n", 2, 6), "m": M}
    program = read_text(tmp_path, text, dims=dims)
    used = {program.tensors[name].shape for name in program.input_tensors}
    names = {name for shape in used for n in map(Expression.of, shape) for name in n.names}
    assert names == {"n"}
    with pytest.raises(SizeError, match=r"has the range 2\.\.6"):
        read_text(tmp_path, text, dims={**dims, "m": Dimension("m", 4, 6)})


def test_a_length_can_be_an_expression_of_others(tmp_path: Path) -> None:
    text = """(float[past,4] old, float[seq,4] x, float[total,4] m) => (float[total,4] y)
        { c = Concat<axis=0>(old, x) y = Add(c, m) }"""
    past, seq = Dimension("past", 0, 7), Dimension("seq", 1, 3)
    dims = {"past": past, "seq": seq, "total": past.size + seq.size}
    program = read_text(tmp_path, text, dims=dims)
    assert program.dimensions == (past, seq)
    assert at(program.tensors["m"].shape[0], {"past": 2, "seq": 3}) == 5
    tied = read_text(tmp_path, text, dims={**dims, "total": Dimension("total", 1, 10)})
    assert tied.tensors == program.tensors
    assert tied.dimensions == program.dimensions
    assert tied.notes[0] == "dimension 'total' is past + seq, as operators require"
    with pytest.raises(SizeError, match=r"if they are always, total has the range 1\.\.10"):
        read_text(tmp_path, text, dims={**dims, "total": Dimension("total", 4, 10)})
    with pytest.raises(BindingError, match="'total' is past \\+ seq, but 'past' has no range"):
        read_text(tmp_path, text, dims={**dims, "past": 7})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"dims": {"n": N}, "shapes": {"x": (4, 2)}}, "'n' cannot be both 4 and 1..9"),
        ({"shapes": {"x": (N, Dimension("n", 1, 8))}}, "'k' cannot be both n=1..9 and n=1..8"),
        ({"dims": {"n": N, "m": 3}}, "'m' is not a free dimension"),
        ({"dims": {"n": N}}, "free dimensions 'k'"),
    ],
)
def test_ranges_that_contradict_are_refused(
    options: dict[str, dict[str, object]], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=reason):
        load(save(tmp_path, parse(TWO)), **options)


def test_a_fixed_input_is_a_constant_of_all_sizes(tmp_path: Path) -> None:
    text = "(float[n,m] x, float[n,m] z) => (float[n,m] y) { t = Neg(z) y = Add(x, t) }"
    path = save(tmp_path, parse(text))
    program = load(path, dims={"n": N, "m": M}, values={"z": 2.0}, weights=True)
    sizes = {"n": 3, "m": 4}
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(arrays_at(program, sizes, {"x": x})["y"], x - 2)


def test_elements_are_looked_up_in_old_operator_sets(tmp_path: Path) -> None:
    model = with_random_weights(parse(DATA["a length as a number"], opset=9))
    assert_right_at_each_size(model, save(tmp_path, model), {"n": N})


BRANCHES = """(float[n,4] x, float[2] z) => (float[n,4] y)
    <int64 zero = {0}, int64 limit = {LIMIT}>
    { s = Shape(x) a = Gather(s, zero) c = Less(a, limit) y = If (c) <
        then_branch = g1 () => (float[n,4] p) { p = Relu(x) },
        else_branch = g2 () => (float[n,4] q) { q = Neg(x) }> }"""


@pytest.mark.parametrize(("limit", "taken"), [(10, "Relu"), (1, "Neg")])
def test_a_branch_that_all_sizes_take_is_taken(limit: int, taken: str, tmp_path: Path) -> None:
    text = BRANCHES.replace("LIMIT", str(limit))
    program = read_text(tmp_path, text, dims={"n": N})
    assert [step.operator.label for step in program.steps] == [taken]


def test_a_branch_that_some_sizes_take_says_where_to_split_the_range(tmp_path: Path) -> None:
    text = BRANCHES.replace("LIMIT", "5")
    with pytest.raises(SizeError, match=r"'If_\d' .*: a comparison of n and 5 differs among the "
                       "sizes; split the range of n before 5$"):  # fmt: skip
        read_text(tmp_path, text, dims={"n": N})
    low, high = Dimension("n", 1, 4), Dimension("n", 5, 9)
    labels = [read_text(tmp_path, text, dims={"n": each}).steps[0].operator.label
              for each in (low, high)]  # fmt: skip
    assert labels == ["Relu", "Neg"]


SUBGRAPHS = {
    "branch": """(float[n,4] x, bool c) => (float[n,4] y) { y = If (c) <
        then_branch = g1 () => (float[n,4] p) { p = Relu(x) },
        else_branch = g2 () => (float[n,4] q) { q = Neg(x) }> }""",
    "loop": """(float[n,4] x, int64 k, bool c) => (float[n,4] y) { y = Loop (k, c, x) <
        body = g (int64 i, bool d, float[n,4] p) => (bool e, float[n,4] q)
        { e = Identity(d) q = Relu(p) }> }""",
}


@pytest.mark.parametrize("text", SUBGRAPHS.values(), ids=SUBGRAPHS)
def test_subgraphs_that_stay_take_no_range(text: str, tmp_path: Path) -> None:
    with pytest.raises(SizeError, match="'x' depends on a dimension, which is unsupported inside"):
        read_text(tmp_path, text, dims={"n": N})


def test_subgraphs_beside_a_range_stay(tmp_path: Path) -> None:
    text = """(float[n,4] x, float[4] z, bool c) => (float[n,4] y) { t = If (c) <
        then_branch = g1 () => (float[4] p) { p = Relu(z) },
        else_branch = g2 () => (float[4] q) { q = Neg(z) }> y = Add(x, t) }"""
    program = read_text(tmp_path, text, dims={"n": N})
    assert [step.operator.label for step in program.steps] == ["If", "Add"]


def test_a_fixed_length_takes_no_range(tmp_path: Path) -> None:
    path = save(tmp_path, parse("(float[n,4] x) => (float[n,4] y) { y = Relu(x) }"))
    with pytest.raises(BindingError, match=r"has length 4 on axis 1, not 1\.\.4"):
        load(path, shapes={"x": (2, Dimension("", 1, 4))})


PAST, SEQ = Dimension("past", 0, 56), Dimension("seq", 1, 8)
REAL = {
    "text encoder": (
        "tr_vespa_dummy_transformer_mlm.onnx",
        {"batch": Dimension("batch", 1, 4), "tokens": Dimension("tokens", 1, 64)},
    ),
    "decoder of named states": (
        "tr_genai_tiny-random-lfm2-fp32_decoder.onnx",
        {
            "batch_size": Dimension("batch", 1, 2),
            "sequence_length": SEQ,
            "past_sequence_length": PAST,
            "total_sequence_length": PAST.size + SEQ.size,
        },
    ),
    "decoder with fused attention": (
        "tr_genai_tiny-random-gpt2-fp32_past.onnx",
        {"batch_size": 1, "seq_len": 1, "past_seq_len": PAST, "total_seq_len": PAST.size + 1},
    ),
    "lines of text": (
        "ppocr4_rec.onnx",
        {
            "p2o.DynamicDimension.0": Dimension("p2o.DynamicDimension.0", 1, 2),
            "x:2": 48,
            "p2o.DynamicDimension.1": Dimension("p2o.DynamicDimension.1", 32, 320, 8),
        },
    ),
    "landmarks": ("openseeface_lm_model0_opt.onnx", {"batch_size": Dimension("batch_size", 1, 4)}),
    "notes of music": ("basic_pitch.onnx", {"unk__749": Dimension("unk__749", 1, 4)}),
    "voice activity": (
        "silero_vad_16k_op15.onnx",
        {"batch": Dimension("batch", 1, 4), "sequence": 576},
    ),
}


@pytest.mark.parametrize(("file", "dims"), REAL.values(), ids=REAL)
def test_real_models_are_read_for_a_range(file: str, dims: dict[str, int | Dimension]) -> None:
    path = shared("models/onnx") / file
    ranged = load(path, dims=dims)
    varied = {each.name: each for each in dims.values() if isinstance(each, Dimension)}
    assert {*ranged.dimensions} == {*varied.values()}
    for sizes in points(tuple(varied.values()))[::2]:
        fixed = {
            name: sizes[each.name] if isinstance(each, Dimension) else at(each, sizes)
            for name, each in dims.items()
        }
        assert_same_at_each_size(ranged, [(sizes, load(path, dims=fixed))])


def test_a_slice_backwards_to_no_end_takes_all_of_a_rest():
    n = Dimension("n", 3, 9)
    length = n.size - n.size // 2 - 1
    assert same(slice_length(Ranges([n]), length, -1, -(2**63), -1), length)
