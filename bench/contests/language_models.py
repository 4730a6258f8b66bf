"""A language model of 4 bits whose weights are resident in part, beside other engines."""

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import onnx

from arenite import build
from arenite.compression import OnnxModel, with_blocks, write_onnx
from arenite.pipeline.generation.lengths import decoder_dims
from bench.contests.runtime import difference
from bench.harness import llama_cpp
from bench.harness.contest import Asked, Row, contest, option
from bench.harness.decoding import Decoded, decode_by_llama_cpp, decode_by_ours, decode_by_stock
from bench.harness.measuring import in_fresh_process, interleaved, paired_ratios
from bench.zoo.llama import smollm

_STOCK, _LLAMA = "ONNX Runtime", "llama.cpp"
_VOCABULARY, _LENGTH, _CHUNK = 49152, 256, 16
_TOLERANCE = 1e-4


@contest(
    {"SmolLM-135M's layers, weights of 4 bits": {
        "weights": "", "resident, B": "", "streamed, B": "", "arena, B": "", "peak, MB": ".1f",
        "to ONNX Runtime's": ".2f", "a token, ms": ".1f", "tokens a second": ".0f",
        "time to ONNX Runtime's": ".2f",
    }},
    rounds=5,
    options=[option("--tokens", type=int, default=40, help="of a process (default: 40)")],
)  # fmt: skip
def language_model_memory(asked: Asked) -> Iterator[Row]:
    """Peak memory and speed of a language model, some of its weights resident, of 4 bits.

    The decoder has SmolLM-135M's layers and seeded weights, coded by `arenite compress --bits 4
    --block 32`, for llama.cpp, where it is installed, by its `Q4_0`; its cache has room for 256
    tokens. Each engine is a Python process of its own, in turns, with one thread that computes:
    peaks are `VmHWM`, a time is the median processor time of a token, of all threads. Streamed
    weights are in the page cache. Logits are ONNX Runtime's to 1e-4 of the largest, and with
    streamed weights the same to the bit.
    """
    floats, path = asked.folder / "floats.onnx", asked.folder / "model.onnx"
    model = smollm(vocabulary=_VOCABULARY, fused=True)
    onnx.save(model, floats)
    write_onnx(path, with_blocks(OnnxModel(floats), 4, 32)[0])
    count = asked.given.tokens
    runs: dict[str, Callable[[], Decoded]] = {
        _STOCK: partial(in_fresh_process, decode_by_stock, path, count, _VOCABULARY)
    }
    facts: dict[str, Row] = {_STOCK: {}}
    if llama_cpp.is_installed():
        peer = asked.folder / "model.gguf"
        llama_cpp.write_gguf(model, peer, heads=9, key_heads=3, most=_LENGTH, bits=4)
        runs[_LLAMA] = partial(
            in_fresh_process, decode_by_llama_cpp, peer, count, _VOCABULARY, _LENGTH
        )
        facts[_LLAMA] = {}
    for share in ("100%", "50%", "25%"):
        program = asked.folder / f"{share}.arena"
        dims = decoder_dims(path, _LENGTH, _CHUNK, {})
        built = build(path, program, dims=dims, weights=share)
        streaming = built.compiled.streaming
        assert streaming is not None
        facts[share] = {
            "resident, B": streaming.resident, "streamed, B": streaming.streamed,
            "arena, B": built.arena_bytes,
        }  # fmt: skip
        runs[share] = partial(in_fresh_process, decode_by_ours, program, count, _VOCABULARY)
    ran = interleaved(runs, asked.rounds)
    stock = ran[_STOCK]
    for name, made in ran.items():
        if name != _LLAMA:  # its weights are rounded in another way
            off = difference([made[0].logits], [stock[0].logits])
            asked.require(off <= _TOLERANCE, f"{name}: logits")
        if name not in (_STOCK, _LLAMA):
            same = made[0].logits.tobytes() == ran["100%"][0].logits.tobytes()
            asked.require(same, f"{name}: the bits of resident weights")
        seconds = [each.median_s for each in made]
        token = statistics.median(seconds)
        peak = statistics.median(each.peak_bytes for each in made)
        yield {
            "weights": name, **facts[name], "peak, MB": peak / 1e6,
            "to ONNX Runtime's": peak / statistics.median(each.peak_bytes for each in stock),
            "a token, ms": 1e3 * token, "tokens a second": 1 / token,
            "time to ONNX Runtime's": paired_ratios(seconds, [each.median_s for each in stock]),
        }  # fmt: skip
