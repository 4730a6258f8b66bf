"""Transformers beside other engines: encoders, tokens of decoders, arenas in bands, and as C."""

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.compression.blocks import with_blocks
from arenite.compression.onnx_model import OnnxModel
from arenite.pipeline.base.reading import Reading, StatedDims, lengths_of
from arenite.pipeline.generation.lengths import decoder_dims
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.programs import random_inputs
from arenite.pipeline.session import Session
from arenite.pipeline.targets.compiling import lower_model
from arenite.planner import TensorKind
from arenite.runtime.operators import BlockGather, Gather
from arenite.runtime.targets.onnxruntime import stock_options, stock_session
from bench.boards import run as running
from bench.boards.board import board
from bench.boards.program import exported
from bench.byte_encoder import byte_encoder
from bench.contests.c_code import export_c, on_board
from bench.contests.runtime import difference
from bench.harness import llama_cpp
from bench.harness.contest import TABLE, Asked, Row, chosen, contest, note, option
from bench.harness.engines import OURS, compiled_entry, converted_peers, race
from bench.harness.inputs import zoo_file
from bench.harness.llama_cpp import LlamaCpp
from bench.harness.measuring import interleaved, mean_processor_seconds, paired_ratios
from bench.short_weights import with_short_weights
from bench.zoo.decoders import language_model
from bench.zoo.edge import bert_layers
from bench.zoo.llama import smollm

Array = NDArray[Any]
_ENCODERS, _DECODING, _ARENAS = "Encoders", "One token of a decoder", "Arenas in bands"
_CACHED = "Caches of 16 and 8 bits"
_AS_C = "An encoder of 8-bit integers as C source"
_PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "mnn": "MNN", "ncnn": "ncnn"}
ENCODERS = ("bert-mini", "minilm-layers", "deit-tiny", "vit-tiny")
DECODERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "4 layers of 256": partial(language_model, most=4096),
    "SmolLM-135M": smollm,
}
CACHES = (256, 2048)
BOARDS = ("mps2-an500", "mps3-an547")
_BYTES = 166_912
"""Arena of the encoder as C: with 192 B more than tokens, results of a head, keys and values of
another, bands are of single rows."""
_CHUNK = 16
_WEIGHTS = {32: "32-bit floats", 16: "16-bit floats", 4: "4 bits"}
_KEPT = ("fp16", "int8")
"""Types of caches that are timed beside 32-bit floats."""
_LLAMA, _CPP = "SmolLM-135M", "llama.cpp"
"""The decoder that llama.cpp takes."""
_MOST_SLOWER = 0.03
_AS_STOCK, _RIGHT = 1e-5, 1e-3
"""Most that outputs of ONNX Runtime and of others differ, of the largest."""


@contest(
    {_ENCODERS: {
        "network": "", **dict.fromkeys(_PEERS.values(), ".2f"), "of the best": ".2f",
        "ours, ms": ".2f", "arena, B": "",
    }, _DECODING: {
        "decoder": "", "weights": "", "cache": "", "of reading": ".2f",
        "beside ONNX Runtime": ".2f",
        "beside llama.cpp": ".2f", "ours, ms": ".2f", "ONNX Runtime, ms": ".2f",
        "llama.cpp, ms": ".2f", "arena, B": "", "difference": ".0e",
    }, _CACHED: {
        "decoder": "", "weights": "", "tokens": "", "cache": "", "of 32 bits": ".2f",
        "beside llama.cpp": ".2f", "arena, B": "", "difference": ".0e",
    }, _ARENAS: {
        "tokens": "", "arena": "", "bytes": "", "times less": ".2f", "latency": ".2f",
        "predicted": ".2f",
    }, _AS_C: {
        "processor": "", "RAM in all": "", "arena": "", "stack": "", "flash": "",
        "instructions": "",
    }},
    rounds=5,
    options=[
        option("--tables", nargs="+", default=(), metavar="TABLE",
               help="of encoders, decoding, arenas and c (default: all)"),
        option("--seconds", type=float, default=0.3, help="seconds of a sample (default: 0.3)"),
        option("--decoders", nargs="+", default=(), metavar="NAME", help="(default: all)"),
    ],
)  # fmt: skip
def transformers(asked: Asked) -> Iterator[Row]:
    """Transformers beside other engines: encoders, tokens of decoders, arenas in bands, and as C.

    Times are of the processor, one thread, engines in turn; below 1 ours is faster. A decoder has
    a full cache and computes one token: in our sessions the cache is a state, ONNX Runtime takes
    and returns it; ours is timed with caches of 16 and 8 bits, too. Weights of 16 bits have a Cast
    behind them, those of 4 bits are of `arenite compress --bits 4 --block 32`, and of the same
    file; llama.cpp, where it is installed, has its own `Q4_0`. Reading is NumPy's search for the
    largest of as many bytes as a token has to read: weights and cache, once. BERT-mini in bands is
    compared with itself whole. The encoder of 8-bit integers has BERT-tiny's shape and 512 tokens,
    int8 in and out; its C source runs on emulated boards and gives the bits of our runtime.
    """
    tables = {"encoders": _encoders, "decoding": _decoding, "arenas": _arenas, "c": _as_c}
    for name in chosen(asked.given.tables, tables, "table"):
        yield from tables[name](asked)


def _encoders(asked: Asked) -> Iterator[Row]:
    for name in ENCODERS:
        model = zoo_file(name, asked.folder)
        with tempfile.TemporaryDirectory() as folder:
            entry = compiled_entry(model, Path(folder))
            raced = race(
                entry, ["onnxruntime", "openvino"], asked.rounds,
                peers=dict(converted_peers(model, Path(folder))), may_drop=True,
                seconds=asked.given.seconds, by_processor_time=True,
            )  # fmt: skip
        own = raced.pop(OURS)
        row: Row = {
            TABLE: _ENCODERS, "network": name, "ours, ms": statistics.median(own.latencies_ms),
            "arena, B": entry.arena_bytes,
        }  # fmt: skip
        right = {}
        for engine, other in raced.items():
            off = difference(own.outputs, other.outputs)
            note(f"{name}: {own.latency_to(other).median:.2f} of {engine}, off by {off:.0e}")
            asked.require(engine != "onnxruntime" or off <= _AS_STOCK, f"{name}: outputs")
            if off <= _RIGHT:
                right[engine] = row[_PEERS[engine]] = own.latency_to(other)
        row["of the best"] = max(right.values(), key=lambda each: each.median)
        yield row


def _decoding(asked: Asked) -> Iterator[Row]:
    for name in chosen(asked.given.decoders, DECODERS, "decoder"):
        for bits, weights in _WEIGHTS.items():
            path = asked.folder / "decoder.onnx"
            model = DECODERS[name]()
            peer = _for_llama_cpp(model, asked.folder, bits) if name == _LLAMA else None
            model = _with_matrices(model)
            onnx.save(with_short_weights(model) if bits == 16 else model, path)
            if bits == 4:
                onnx.save(with_blocks(OnnxModel(path), bits, 32)[0], path)
            for length in CACHES:
                for row in _token(asked, path, length, peer):
                    yield {"decoder": name, "weights": weights, **row}


def _for_llama_cpp(model: onnx.ModelProto, folder: Path, bits: int) -> Path | None:
    """Return the file of SmolLM for llama.cpp, None where that is not installed."""
    if not llama_cpp.is_installed():
        return None
    path = folder / "decoder.gguf"
    llama_cpp.write_gguf(model, path, heads=9, key_heads=3, most=max(CACHES), bits=bits)
    return path


def _with_matrices(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with constants in the place of those that it transposes."""
    graph = model.graph
    constants = {each.name: each for each in graph.initializer}
    for node in [each for each in graph.node if each.op_type == "Transpose"]:
        if node.input[0] in constants:
            array = onnx.numpy_helper.to_array(constants[node.input[0]]).T.copy()
            graph.initializer.append(onnx.numpy_helper.from_array(array, node.output[0]))
            graph.node.remove(node)
    return model


def _token(asked: Asked, path: Path, length: int, peer: Path | None) -> Iterator[Row]:
    """Yield how long the last token takes that a cache has room for, of each type of cache.

    Args:
        peer: The model for llama.cpp; None to leave that out.
    """
    past = length - 1
    tokens = np.random.default_rng(0).integers(0, 96, length)
    options = stock_options(num_threads=1)
    stock = stock_session(path, options)
    with ExitStack() as stack:
        dims = decoder_dims(path, length, _CHUNK, {})
        session = stack.enter_context(Session(path, dims=dims))
        kept = {kind: stack.enter_context(Session(path, dims=dims, cache=kind)) for kind in _KEPT}
        for first in range(0, past, _CHUNK):
            for each in (session, *kept.values()):
                each.run(_fed(tokens, first, min(first + _CHUNK, past)))
        feeds = _fed(tokens, past, length)
        caches = {
            port.name: np.array(session.states[port.name])
            for port in stock.get_inputs()
            if port.name not in feeds
        }
        caches = {name: _by_heads(array) for name, array in caches.items()}

        def ours(session: Session) -> dict[str, Array]:
            session.states.truncate(past)
            return session.run(feeds, copy=False)

        def theirs() -> list[Array]:
            return list(stock.run(None, {**feeds, **caches}))

        logits = np.array(ours(session)["logits"])
        off = difference([logits], theirs()[:1])
        asked.require(off <= _AS_STOCK, f"{path.name} with {length} tokens: outputs")
        measure = partial(mean_processor_seconds, at_least_s=asked.given.seconds)
        read = np.ones(_bytes_read(path, dims) // 8, np.int64)
        runs = {
            "reading": partial(measure, read.max),
            "ours": partial(measure, partial(ours, session)),
            **{kind: partial(measure, partial(ours, each)) for kind, each in kept.items()},
            "theirs": partial(measure, theirs),
        }
        if peer is not None:
            other = stack.enter_context(LlamaCpp(peer, length))
            other.run(tokens[:past], 0)
            runs[_CPP] = partial(measure, partial(other.run, tokens[past:], past))
            apart = difference([logits.reshape(-1)], [other.run(tokens[past:], past)])
            note(f"llama.cpp: outputs differ by {apart:.0e}")
        seconds = interleaved(runs, asked.rounds)
        ratio = paired_ratios(seconds["ours"], seconds["theirs"])
        note(f"cache of {length}: {ratio.median:.2f} of onnxruntime, off by {off:.0e}")
        row: Row = {
            TABLE: _DECODING, "cache": length, "beside ONNX Runtime": ratio,
            "ours, ms": 1e3 * statistics.median(seconds["ours"]),
            "ONNX Runtime, ms": 1e3 * statistics.median(seconds["theirs"]),
            "of reading": paired_ratios(seconds["ours"], seconds["reading"]),
            "arena, B": session.arena_bytes, "difference": off,
        }  # fmt: skip
        rows = {"ours": row}
        for kind, each in kept.items():
            off_by_rounding = difference([np.array(ours(each)["logits"])], [logits])
            rows[kind] = {
                TABLE: _CACHED, "tokens": length, "cache": kind,
                "of 32 bits": paired_ratios(seconds[kind], seconds["ours"]),
                "arena, B": each.arena_bytes, "difference": off_by_rounding,
            }  # fmt: skip
        if peer is not None:
            row[f"{_CPP}, ms"] = 1e3 * statistics.median(seconds[_CPP])
            for kind, stated in rows.items():
                stated[f"beside {_CPP}"] = paired_ratios(seconds[kind], seconds[_CPP])
        yield from rows.values()


def _bytes_read(path: Path, dims: StatedDims) -> int:
    """Return the bytes that a token reads at least: all weights but tables, and the states."""
    program = lower_model(path, Reading(*lengths_of(dims, None))).program
    weights = {
        name
        for step in program.steps
        if not isinstance(step.operator, Gather | BlockGather)
        for name in step.inputs
        if name in program.constants
    }
    states = [each for each in program.tensors.values() if each.kind is TensorKind.STATE]
    read = sum(program.constants[name].nbytes for name in weights)
    return read + sum(int(each.size) for each in states)


def _fed(tokens: Array, first: int, end: int) -> dict[str, Array]:
    return {
        "input_ids": tokens[None, first:end], "attention_mask": np.ones((1, end), np.int64),
        "position_ids": np.arange(first, end)[None],
    }  # fmt: skip


def _by_heads(cache: Array) -> Array:
    """Return keys or values by batches, heads and tokens; a state has tokens first."""
    return np.ascontiguousarray(cache.transpose(1, 2, 0, 3))


def _arenas(asked: Asked) -> Iterator[Row]:
    for rows in (128, 512):
        path = asked.folder / "bert.onnx"
        onnx.save(bert_layers(rows), path)
        fitting = Fitting(path, Reading())
        frontier = fitting.frontier()
        quick = [each for each in frontier if each.slowdown <= _MOST_SLOWER]
        fits = {"whole": frontier[0], "at most 3 % slower": quick[-1], "least": frontier[-1]}
        arrays = random_inputs(fitting.program, 0)
        with ExitStack() as stack:
            runs = {}
            made = {}
            for name, fit in fits.items():
                session = stack.enter_context(fitting.session(fit))
                made[name] = {key: each.tobytes() for key, each in session.run(arrays).items()}
                run = partial(session.run, arrays, copy=False)
                runs[name] = partial(mean_processor_seconds, run, asked.given.seconds)
            seconds = interleaved(runs, asked.rounds)
        for name, fit in fits.items():
            asked.require(made[name] == made["whole"], f"{rows} tokens, {name}: the same bits")
            yield {
                TABLE: _ARENAS, "tokens": rows, "arena": name, "bytes": fit.height,
                "times less": frontier[0].height / fit.height,
                "latency": paired_ratios(seconds[name], seconds["whole"]),
                "predicted": 1 + fit.slowdown,
            }  # fmt: skip


def _as_c(asked: Asked) -> Iterator[Row]:
    path = asked.folder / "encoder.tflite"
    path.write_bytes(byte_encoder())
    inputs = running.random_inputs(path, 1)
    with Session(path) as session:
        (port,) = session.inputs
        expected = running.joined([list(session.run({port.name: inputs[0][0]}).values())])
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        arena = export_c(path, folder / "c", "--budget", str(_BYTES), "--rounding", "even")
        subject = exported(folder / "c")
        for name in BOARDS:
            target = board(name)
            found = on_board(target, subject, folder / name, running.joined(inputs), arena)
            asked.require(found.outputs == expected, f"{name}: the bits of our runtime")
            yield {
                TABLE: _AS_C, "processor": target.processor, "RAM in all": found.ram,
                "arena": found.arena, "stack": found.stack, "flash": found.flash,
                "instructions": f"{found.instructions / 1e6:,.1f} M",
            }  # fmt: skip
