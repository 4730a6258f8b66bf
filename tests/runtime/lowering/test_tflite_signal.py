"""TFLite Micro's signal library, beside its own interpreter."""

import numpy as np
import pytest

from arenite.runtime.lowering import UnsupportedOperatorsError
from support.exported_c import Micro
from support.operator_models import signal_window
from support.running import PoisonedSession, build
from support.tflite_operator import Given, operator_model, weights

GENERATOR = np.random.default_rng(6)


def sixteen(*shape):
    return GENERATOR.integers(-(2**15), 2**15, shape).astype(np.int16)


@pytest.mark.parametrize("shift", [0, 7, 12, 15, 30])
@pytest.mark.parametrize("shape", [(48,), (1, 48), (3, 32)])
@pytest.mark.parametrize("most", [2**12, 2**15])
def test_windowed_signals_are_those_of_tflite_micro_to_the_bit(shift, shape, most, tmp_path):
    window = GENERATOR.integers(0, most, 16).astype(np.int16)
    window[:2] = most - 1, -(2**15) if most == 2**15 else 0
    path = tmp_path / "window.tflite"
    path.write_bytes(signal_window(window, shape, shift))
    reference = Micro(path)
    with PoisonedSession(build(path, tmp_path)) as session:
        (port,) = session.inputs
        for _ in range(2):
            signal = sixteen(*shape)
            signal.reshape(-1)[:2] = -(2**15), 2**15 - 1
            (made,) = session.run({port.name: signal}).values()
            np.testing.assert_array_equal(made, *reference.run([signal]))


@pytest.mark.parametrize(
    ("window", "shift", "reason"),
    [
        (sixteen(16), 31, "shift=31 is unsupported, supported: 0 to 30"),
        (sixteen(16), -1, "shift=-1 is unsupported"),
        (sixteen(15), 2, r"a window of shape \(15,\) does not fit an input of shape \(1, 48\)"),
        (sixteen(16).astype(np.int32), 2, "element type int32 is unsupported, supported: int16"),
    ],
)
def test_other_windows_are_refused(window, shift, reason, tmp_path):
    path = tmp_path / "window.tflite"
    path.write_bytes(signal_window(window, (1, 48), shift))
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)


@pytest.mark.parametrize("scales", [((0.5,), ()), ((), (0.5,))])
def test_windowed_signals_with_a_scale_are_refused(scales, tmp_path):
    source, result = (Given((16,), "int16", None, each) for each in scales)
    path = tmp_path / "window.tflite"
    operands = [source, weights(sixteen(16))]
    path.write_bytes(operator_model("SignalWindow", operands, [result], ("", {"shift": 3})))
    with pytest.raises(UnsupportedOperatorsError, match="tensors with a scale are unsupported"):
        build(path, tmp_path)
