"""A small model for TensorFlow Lite Micro, and its interpreter."""

from pathlib import Path

import pytest


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Write a chain of dense layers."""
    from support.tiny_chains import dense_chain  # tests of ONNX Runtime need no tflite

    path = tmp_path / "chain.tflite"
    path.write_bytes(dense_chain())
    return path


@pytest.fixture(scope="session")
def interpreter() -> None:
    """Skip where the interpreter is not installed."""
    pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")
