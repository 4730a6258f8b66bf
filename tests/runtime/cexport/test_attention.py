"""Attention as C beside our runtime, whole and in bands of queries."""

from pathlib import Path

import numpy as np
import pytest

from bench.byte_encoder import byte_encoder
from support.exported_c import Bands, Machine, Ours, compiled, drawn, exported
from support.quantised_onnx import FORMS, quantised
from support.tiny_onnx import parse, save, with_random_weights

GRAPHS = {
    "several heads": "(float[2,5,12] q, float[2,7,12] k, float[2,7,16] v, float[1,4,5,7] s) => "
    '(y) {y = com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v, "", "", s)}',
    "grouped heads behind earlier tokens, rotated": "(float[1,3,64] q, float[1,3,32] k, "
    "float[1,3,32] v, float[1,2,5,16] a, float[1,2,5,16] b) => (y, c, d) "
    "<int32[1] n = {7}, int32[1] t = {8}, float[9,8] e, float[9,8] f> {y, c, d = "
    "com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2, do_rotary=1, "
    "local_window_size=4, softcap=2.0>(q, k, v, a, b, n, t, e, f)}",
    "interleaved places of each batch": "(float[2,5,32] x) => (y) <int64[2,5] p = "
    "{0,1,2,3,4,3,4,5,6,7}, float[9,4] c, float[9,4] s> "
    "{y = com.microsoft.RotaryEmbedding<num_heads=4, interleaved=1>(x, p, c, s)}",
    "what it is made of": "(float[1,6,16] x) => (y) <float[16,96] w, float[96] b, int64[5] s = "
    "{0,0,3,4,8}, int64[3] t = {0,0,32}, int64 i = {0}, int64 j = {1}, int64 l = {2}, "
    "float[1] g = {0.05}> "
    "{ m = MatMul(x, w) n = Add(m, b) r = Reshape(n, s) p = Transpose<perm=[2,0,3,1,4]>(r) "
    "q = Gather<axis=0>(p, i) k = Gather<axis=0>(p, j) v = Gather<axis=0>(p, l) "
    "kt = Transpose<perm=[0,1,3,2]>(k) o = MatMul(q, kt) h = Mul(o, g) u = Softmax<axis=-1>(h) "
    "m2 = MatMul(u, v) mt = Transpose<perm=[0,2,1,3]>(m2) y = Reshape(mt, t) }",
    "norm by the root mean square": "(float[2,3,8] x, float[2,3,8] s) => (y) <float[8] g> "
    "{y = com.microsoft.SkipSimplifiedLayerNormalization(x, s, g)}",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_c_gives_what_our_runtime_gives(name: str, tmp_path: Path) -> None:
    path = save(tmp_path, with_random_weights(parse(GRAPHS[name], microsoft=True)))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    inputs = drawn(export, 0)
    for expected, found in zip(
        Ours(path).run(list(inputs.values())), machine.run(inputs).values(), strict=True
    ):
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


BLOCK = (
    "(float[1,24,16] x) => (y) <float[16,96] w, float[96] b, float[32,16] o, float[16,64] u, "
    "float[64,16] d> { a = com.microsoft.Attention<num_heads=4>(x, w, b) p = MatMul(a, o) "
    "z = Add(p, x) e = MatMul(z, u) g = Relu(e) f = MatMul(g, d) y = Add(f, z) }"
)


def test_a_block_in_bands_gives_the_bits_of_the_whole(tmp_path: Path) -> None:
    path = save(tmp_path, with_random_weights(parse(BLOCK, microsoft=True)))
    whole, bands = exported(path), Bands(path)
    banded = bands.within(bands.least)
    assert banded.arena_bytes < 0.8 * whole.arena_bytes
    inputs = drawn(whole, 0)
    results = [
        Machine.of(each, compiled(each, tmp_path / name)).run(inputs)
        for name, each in (("whole", whole), ("banded", banded))
    ]
    np.testing.assert_array_equal(results[0]["y"], results[1]["y"])


def test_attention_of_bytes_in_groups_of_heads_and_bands_gives_the_bits_of_our_runtime(
    tmp_path: Path,
) -> None:
    path = tmp_path / "encoder.tflite"
    path.write_bytes(byte_encoder(48, layers=1, features=32))
    whole, bands = exported(path, rounding="even"), Bands(path)
    banded = bands.within(bands.least, rounding="even")
    # Tokens, results of one head, keys and values of the other, and a few rows.
    tokens = 48 * 32
    assert banded.arena_bytes <= 2.5 * tokens + 256
    assert banded.arena_bytes < 0.7 * whole.arena_bytes
    inputs = drawn(whole, 0)
    (expected,) = Ours(path).run(list(inputs.values()))
    for name, each in (("whole", whole), ("banded", banded)):
        machine = Machine.of(each, compiled(each, tmp_path / name, "-fsanitize=undefined"))
        (found,) = machine.run(inputs).values()
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_attention_of_bytes_with_scaled_scores_gives_the_bits_of_our_runtime(
    tmp_path: Path,
) -> None:
    network = (
        "(float[1,12,16] x) => (y) <float[16,16] a, int64[4] s = {0,0,2,8}, float r = {2.8}> "
        "{ d = MatMul(x, a) e = Reshape(d, s) q = Transpose<perm=[0,2,1,3]>(e) "
        "k = Transpose<perm=[0,1,3,2]>(q) o = MatMul(q, k) p = Div(o, r) "
        "u = Softmax<axis=-1>(p) y = MatMul(u, q) }"
    )
    path = quantised(tmp_path, FORMS["qdq, signed"], network)
    export = exported(path)
    assert b"attention_even_s8" in export.files[f"{export.name}.c"]
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    for number in range(5):
        inputs = drawn(export, number)
        (expected,) = Ours(path).run(list(inputs.values()))
        (found,) = machine.run(inputs).values()
        np.testing.assert_array_equal(found, expected)
