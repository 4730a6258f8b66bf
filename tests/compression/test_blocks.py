"""Weights of products in blocks, as ONNX Runtime's MatMulNBits."""

import numpy as np
import onnx
import pytest

from arenite.compression import NoLayerError, OnnxModel, with_blocks, write_onnx
from arenite.pipeline.targets.compiling import lower_model
from support.running import PoisonedSession, assert_agrees, assert_same, build, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

PRODUCTS = (
    "(float[3,40] x) => (y) <float[40,50] w, float[30,50] g, float[30] b, float[2,2] s> "
    "{m = MatMul(x, w) y = Gemm<transB=1>(m, g, b)}"
)


def dense(model, name, shape, bits, length):
    """Return the weights that codes and scales state, outputs first."""
    arrays = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    codes = arrays[f"{name}/codes"].astype(np.float32)
    if bits == 4:
        codes = np.stack([codes % 16, codes // 16], axis=-1).reshape(*codes.shape[:2], -1)
    scales = arrays[f"{name}/scales"].reshape(*codes.shape[:2], 1)
    rows = ((codes - (1 << (bits - 1))) * scales).reshape(shape[0], -1)
    return rows[:, : shape[1]], scales


@pytest.mark.parametrize(("bits", "length"), [(4, 16), (4, 32), (8, 64)])
def test_products_take_weights_in_blocks(bits, length, tmp_path):
    path = save(tmp_path, with_random_weights(parse(PRODUCTS)))
    given = {
        each.name: onnx.numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer
    }
    model, layers = with_blocks(OnnxModel(path), bits, length)
    assert [each.name for each in layers] == ["w", "g"]
    assert [node.op_type for node in model.graph.node] == ["MatMulNBits"] * 2
    for layer, rows, name in zip(
        layers, (given["w"].T, given["g"]), ("w/columns", "g/rows"), strict=True
    ):
        stored, scales = dense(model, name, rows.shape, bits, length)
        assert np.array_equal(scales.astype(np.float16).astype(np.float32), scales)
        distance = np.abs(stored - rows)
        blocks = np.repeat(np.abs(scales[..., 0]), length, axis=1)[:, : rows.shape[1]]
        assert np.all(distance <= 1.1 * blocks)  # the last code is missing on one side
        assert layer.error == pytest.approx(np.sum(distance**2) / np.sum(rows**2), rel=1e-4)
    smaller = tmp_path / "smaller"
    smaller.mkdir()
    write_onnx(smaller / "blocks.onnx", model)
    assert_agrees(smaller / "blocks.onnx", smaller, backends={"arenite"})
    feeds = {"x": np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)}
    was, now = (reference_outputs(each, feeds)["y"] for each in (path, smaller / "blocks.onnx"))
    assert np.linalg.norm(now - was) / np.linalg.norm(was) < (0.2 if bits == 4 else 0.02)


def test_blocks_of_zeros_are_zeros(tmp_path):
    model = with_random_weights(
        parse("(float[3,40] x) => (y) <float[40,50] w> {y = MatMul(x, w)}")
    )
    model.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(np.zeros((40, 50), np.float32), "w")
    )
    made, _ = with_blocks(OnnxModel(save(tmp_path, model)), 4, 32)
    stored, _ = dense(made, "w/columns", (50, 40), 4, 32)
    assert not stored.any()


def test_a_model_without_products_is_refused(tmp_path):
    text = "(float[1,6,9,11] x) => (y) <float[20,6,3,3] w> {y = Conv(x, w)}"
    with pytest.raises(NoLayerError, match="no layer to store in blocks"):
        with_blocks(OnnxModel(save(tmp_path, with_random_weights(parse(text)))), 4, 32)


def test_a_look_up_and_a_product_of_one_table_share_its_codes(tmp_path):
    text = (
        "(int64[5] i) => (y) <float[40,64] w, float[64,64] v> {e = Gather(w, i) "
        "h = MatMul(e, v) t = Transpose<perm=[1,0]>(w) y = MatMul(h, t)}"
    )
    path = save(tmp_path, with_random_weights(parse(text)))
    model, layers = with_blocks(OnnxModel(path), 4, 32)
    assert [each.name for each in layers] == ["w", "v"]
    kinds = [node.op_type for node in model.graph.node]
    assert kinds == ["Reshape", "Reshape", "GatherBlockQuantized", *["MatMulNBits"] * 2]
    sizes = [onnx.numpy_helper.to_array(each).nbytes for each in model.graph.initializer]
    assert sum(sizes) == (40 + 64) * (64 // 2 + 2 * 4) + 2 * 16  # codes, scales and two shapes
    smaller = tmp_path / "smaller"
    smaller.mkdir()
    write_onnx(smaller / "blocks.onnx", model)
    program = lower_model(smaller / "blocks.onnx").program
    codes = [name for name, each in program.constants.items() if each.dtype == np.uint8]
    assert len(codes) == 2
    feeds = {"i": np.array([0, 39, 3, 7, 7])}
    with PoisonedSession(build(smaller / "blocks.onnx", smaller), guard=True) as session:
        assert "onnxruntime" not in session.backends()
        wanted = reference_outputs(smaller / "blocks.onnx", feeds)
        assert_same(session.run(feeds), wanted, 1e-5)
