"""Small decoders of tokens with a cache, and a tokenizer."""

from pathlib import Path

import onnx
import pytest

from bench.zoo.decoders import language_model

VOCABULARY = 96


def decoder_file(folder: Path) -> Path:
    """Write a decoder of two layers and return the file."""
    path = folder / "decoder.onnx"
    model = language_model(layers=2, features=32, heads=2, vocabulary=VOCABULARY, most=256)
    onnx.save(model, path)
    return path


def add_tokenizer(model: Path) -> None:
    """Write a tokenizer of letters beside a decoder, or skip the test."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {chr(32 + n): n for n in range(VOCABULARY)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(words, []))
    tokenizer.decoder = tokenizers.decoders.Fuse()
    tokenizer.save(str(model.with_name("tokenizer.json")))
