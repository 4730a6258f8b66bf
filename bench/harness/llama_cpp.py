"""llama.cpp as a peer: a decoder of Llama's kind as its file, and tokens by its library.

The packages are `llama-cpp-python` and `gguf`; contests leave the peer out without them.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnx
from numpy.typing import NDArray

from bench.harness.contest import note

_NEEDS = ("llama_cpp", "gguf")
_PRODUCTS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
"""Products of a layer in the order of the zoo's models, by llama.cpp's names."""
_CHUNK = 16


def is_installed() -> bool:
    """Tell whether the packages are there, with a note if they are not."""
    missing = [package for package in _NEEDS if find_spec(package) is None]
    if missing:
        note(f"llama.cpp is left out: {', '.join(missing)} is not installed")
    return not missing


def write_gguf(
    model: onnx.ModelProto, path: Path, *, heads: int, key_heads: int, most: int, bits: int
) -> None:
    """Write a decoder of `bench.zoo.llama` as llama.cpp reads it.

    Args:
        heads: Of the queries.
        key_heads: Of keys and values.
        most: Most tokens of a text.
        bits: 32 or 16 for floats, 4 for `Q4_0`: blocks of 32 with one scale each.
    """
    import gguf

    arrays = {each.name: each for each in model.graph.initializer}
    table = next(each for name, each in arrays.items() if name.startswith("words"))
    words = onnx.numpy_helper.to_array(table)
    features = words.shape[1]
    matrices = [
        onnx.numpy_helper.to_array(arrays[node.input[1]]).T
        for node in model.graph.node
        if node.op_type == "MatMul" and node.input[1] in arrays
    ]
    layers = len(matrices) // len(_PRODUCTS)  # a constant last projection is not among them
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_context_length(most)
    writer.add_embedding_length(features)
    writer.add_feed_forward_length(matrices[_PRODUCTS.index("ffn_up")].shape[0])
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(features // heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("no_vocab")
    kinds = gguf.GGMLQuantizationType
    kind = {32: kinds.F32, 16: kinds.F16, 4: kinds.Q4_0}[bits]

    def add(name: str, matrix: NDArray[np.float32]) -> None:
        stored = gguf.quants.quantize(np.ascontiguousarray(matrix), kind)
        writer.add_tensor(f"{name}.weight", stored, raw_dtype=kind)

    ones = np.ones(features, np.float32)
    add("token_embd", words)
    writer.add_tensor("output_norm.weight", ones)
    for layer in range(layers):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", ones)
        for index, name in enumerate(_PRODUCTS):
            matrix = matrices[layer * len(_PRODUCTS) + index]
            if name in ("attn_q", "attn_k"):
                matrix = _in_pairs(matrix, heads if name == "attn_q" else key_heads)
            add(f"blk.{layer}.{name}", matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _in_pairs(matrix: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Return rows in the order of llama.cpp, where neighbours turn together."""
    outputs, depth = matrix.shape
    halves = matrix.reshape(heads, 2, outputs // heads // 2, depth)
    return halves.swapaxes(1, 2).reshape(outputs, depth)


class LlamaCpp:
    """A context of llama.cpp on one thread, as it is by default: its cache is of 16-bit floats."""

    def __init__(self, path: Path, length: int) -> None:
        """Load a file; its cache has room for so many tokens."""
        import llama_cpp

        self._llama: Any = llama_cpp.Llama(
            str(path), n_ctx=length, n_batch=_CHUNK, n_threads=1, n_threads_batch=1, verbose=False
        )

    def run(self, tokens: NDArray[Any], past: int) -> NDArray[np.float32]:
        """Return the logits behind tokens that follow so many of the cache."""
        self._llama.n_tokens = past
        self._llama.eval([int(each) for each in tokens])
        logits = self._llama._ctx.get_logits()  # noqa: SLF001 - its wrapper copies none of them
        return np.array(np.ctypeslib.as_array(logits, (self._llama.n_vocab(),)))

    def close(self) -> None:
        """Release the memory."""
        self._llama.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
