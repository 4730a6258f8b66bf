"""Tokens of a decoder in a process of its own, by our session, by ONNX Runtime or llama.cpp."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.harness.measuring import peak_rss_bytes


@dataclass(frozen=True, slots=True)
class Decoded:
    """Tokens that a process made.

    Attributes:
        peak_bytes: Peak resident memory of the process.
        median_s: Median processor time of a token, in seconds.
        logits: Those of the last token.
    """

    peak_bytes: int
    median_s: float
    logits: NDArray[np.float32]


def decode_by_ours(program: Path, count: int, vocabulary: int) -> Decoded:
    """Run so many tokens through a program whose cache is a state, on one thread."""
    from arenite.runtime import Session

    with Session(program, threads=1) as session:
        return _decode(lambda feeds: session.run(feeds)["logits"], count, vocabulary)


def decode_by_stock(model: Path, count: int, vocabulary: int) -> Decoded:
    """Run so many tokens through ONNX Runtime on one thread, its caches handed on."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    caches = {
        each.name: np.zeros([0 if isinstance(n, str) else n for n in each.shape], np.float32)
        for each in session.get_inputs()
        if each.name.startswith("past_key_values")
    }

    def run(feeds: dict[str, Any]) -> Any:
        made = dict(zip(names, session.run(None, {**feeds, **caches}), strict=True))
        for name in caches:
            caches[name] = made[name.replace("past_key_values", "present")]
        return made["logits"]

    return _decode(run, count, vocabulary)


def decode_by_llama_cpp(model: Path, count: int, vocabulary: int, length: int) -> Decoded:
    """Run so many tokens through llama.cpp on one thread, its cache of `length` tokens."""
    from bench.harness.llama_cpp import LlamaCpp

    with LlamaCpp(model, length) as llama:
        return _decode(
            lambda feeds: llama.run(feeds["input_ids"][0], feeds["attention_mask"].size - 1),
            count, vocabulary,
        )  # fmt: skip


def _decode(run: Callable[[dict[str, Any]], Any], count: int, vocabulary: int) -> Decoded:
    seconds = []
    for place, token in enumerate(np.random.default_rng(0).integers(0, vocabulary, count)):
        feeds = {"input_ids": np.array([[token]]), "attention_mask": np.ones((1, place + 1), int)}
        begins = time.process_time()
        logits = run(feeds)
        seconds.append(time.process_time() - begins)
    return Decoded(peak_rss_bytes(), float(np.median(seconds)), np.array(logits).reshape(-1))
