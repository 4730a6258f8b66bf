"""Models run by our session and by the reference, on the same inputs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnxruntime
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.planner import AreniteError
from arenite.runtime import Session
from arenite.runtime.program import write_assembly
from arenite.strategies import find

MANY_KINDS = """(float[1,3,16,16] x) => (y, z)
<float[8,3,3,3] w, float[8,1,3,3] d, float[128,5] f, int64[8] s = {0,0,1,1,0,0,1,1},
float[4] k = {1,1,2,2}>
{ c = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w) e = Conv<group=8, pads=[1,1,1,1]>(c, d)
  h = Tanh(e) a = Add(h, c) o = Pad(a, s) p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)
  j = Concat<axis=1>(p, p) n = Resize<mode="nearest",
  coordinate_transformation_mode="asymmetric", nearest_mode="floor">(j, , k)
  m = ReduceMax<axes=[1]>(n) q = Flatten(p) l = Gemm(q, f) y = Softmax<axis=-1>(l)
  g = MatMul(m, m) v = ReduceSum<keepdims=0>(o) z = Add(g, v) }"""
"""A network with many kinds of steps."""


def build(path: Path, folder: Path, **options: Any) -> Path:
    """Return the program file of a model."""
    compiled = compile_model(path, **options)
    program = folder / "model.arena"
    plan = find("best")(compiled.source.problem)
    write_assembly(program, compiled.assemble(plan))
    return program


class PoisonedSession:
    """A session whose outputs do not depend on what dead memory holds, or the test fails.

    Each run is one with the bytes of NaN and one with those of a large number: kernels that clamp
    turn NaN into what looks right, and some integers are -1 by nature.
    """

    BYTES = (0xFF, 0x4B)

    def __init__(self, path: Path | Iterable[bytes], **options: Any) -> None:
        if isinstance(path, Path):
            self._sessions = [Session(path, poison=byte, **options) for byte in self.BYTES]
        else:
            pieces = list(path)
            self._sessions = [
                Session.of_pieces(pieces, "poisoned", poison=byte, **options)
                for byte in self.BYTES
            ]
        self.inputs = self._sessions[0].inputs
        self.backends = self._sessions[0].backends

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs, the same bits for every byte."""
        first, second = (session.run(feeds) for session in self._sessions)
        for name, array in first.items():
            assert array.tobytes() == second[name].tobytes(), f"{name} depends on dead memory"
        return first

    def reset(self) -> None:
        """Reset the states of both sessions to their initial values."""
        for session in self._sessions:
            session.reset()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the sessions."""
        for session in self._sessions:
            session.close()


def random_feeds(session: Session | PoisonedSession, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random inputs: numbers, small integers, or truth values."""
    generator = np.random.default_rng(seed)
    feeds = {}
    for port in session.inputs:
        if port.dtype.kind == "f":
            feeds[port.name] = generator.standard_normal(port.shape).astype(port.dtype)
        else:
            feeds[port.name] = generator.integers(0, 2, port.shape).astype(port.dtype)
    return feeds


def reference_outputs(path: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what ONNX Runtime makes of the inputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def assert_same(
    ours: dict[str, np.ndarray],
    theirs: dict[str, np.ndarray],
    tolerance: float = 1e-4,
    least: float = 1e-6,
) -> None:
    """Compare outputs, relative to the largest number of each, or to the least scale."""
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        assert ours[name].shape == expected.shape
        assert ours[name].dtype == expected.dtype
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(ours[name], expected)
            continue
        scale = np.max(np.abs(expected), initial=least)
        np.testing.assert_allclose(ours[name] / scale, expected / scale, rtol=0, atol=tolerance)


def assert_refused(path: Path, folder: Path) -> None:
    """Check that a model whose operands do not fit is refused: by the latest in the run."""
    with pytest.raises(AreniteError), PoisonedSession(build(path, folder)) as session:
        session.run(random_feeds(session))


def assert_agrees(
    path: Path,
    folder: Path,
    *,
    seed: int = 0,
    tolerance: float = 1e-5,
    backends: Iterable[str] | None = None,
) -> None:
    """Build a model in a folder, and compare its run under guard with ONNX Runtime's.

    Args:
        path: ONNX model.
        folder: Receives the program file.
        seed: Of the random inputs.
        tolerance: Difference relative to the largest number of an output.
        backends: If given, exactly these compute the steps.
    """
    with PoisonedSession(build(path, folder), guard=True) as session:
        if backends is not None:
            assert set(session.backends()) == set(backends)
        feeds = random_feeds(session, seed)
        assert_same(session.run(feeds), reference_outputs(path, feeds), tolerance)
