"""Small decoders of tokens with a cache, and a tokenizer."""

from pathlib import Path

import onnx
import pytest

from bench.zoo.decoders import language_model

VOCABULARY = 96
DIMS = {
    "sequence_length": "1..4", "past_sequence_length": "0..63+",
    "total_sequence_length": "past_sequence_length+sequence_length",
}  # fmt: skip
"""Of a decoder of the zoo whose cache grows to 64 tokens."""


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
