"""Time, memory and results of a program that runs models; for the programs beside this file.

They import only this module and the package that they run, and know nothing of Arenite.
"""

import json
import os
import runpy
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

OTHER_KERNELS = "DROP_IN_OTHER_KERNELS"
"""Environment variable: the other runtime uses other kernels than by default, to compare with."""
SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"
"""Models and pictures beside the checkout, of programs whose packages have none."""


def measure(
    prepare: Callable[[], Any], call: Callable[[Any], Mapping[str, Any]], calls: int = 20
) -> None:
    """Run a program and write its results and what it took into the folder of the first argument.

    Args:
        prepare: Loads the models.
        call: Runs them once, and returns arrays by name; those of the last call are kept.
        calls: Number of calls after the first.
    """
    folder = Path(sys.argv[1])
    before, started = _resident("VmRSS"), time.perf_counter()
    loaded = prepare()
    results = call(loaded)
    first = time.perf_counter() - started
    taken = []
    for _ in range(calls):
        begun = time.process_time()
        results = call(loaded)
        taken.append(time.process_time() - begun)
    stated = {
        "first_s": first,
        "call_s": float(np.median(taken)),
        "before_bytes": before,
        "peak_bytes": _resident("VmHWM"),
    }
    (folder / "measured.json").write_text(json.dumps(stated))
    np.savez(folder / "results.npz", **{name: np.asarray(each) for name, each in results.items()})


def _use_other_kernels() -> None:
    """Let LiteRT run without XNNPACK."""
    for name in ("ai_edge_litert.interpreter", "tflite_runtime.interpreter"):
        with suppress(ImportError):
            module = import_module(name)
            kind = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            module.Interpreter = partial(module.Interpreter, experimental_op_resolver_type=kind)


def _use_one_thread() -> None:
    """Let ONNX Runtime run with one thread, whose processor time is not that of waiting."""
    with suppress(ImportError):
        import onnxruntime

        class Single(onnxruntime.InferenceSession):  # type: ignore[misc]  # without types
            def __init__(self, path: Any, sess_options: Any = None, *rest: Any, **named: Any):
                options = sess_options or onnxruntime.SessionOptions()
                options.intra_op_num_threads = 1
                if os.environ.get(OTHER_KERNELS):  # without its rewrites of the graph
                    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
                    options.graph_optimization_level = level
                super().__init__(path, options, *rest, **named)

        onnxruntime.InferenceSession = Single


def signal(seconds: float, rate: int) -> Any:
    """Return sweeping tones with noise, the same each time: 32-bit floats from -1 to 1."""
    moments = np.arange(int(seconds * rate)) / rate
    generator = np.random.default_rng(0)
    tones = sum(
        np.sin(2 * np.pi * (base * moments + 40 * np.sin(3 * moments + base)))
        * (np.sin(2 * np.pi * moments * (1 + base / 900)) > 0)
        for base in (220, 523, 1760)
    )
    return (0.2 * tones + 0.02 * generator.standard_normal(moments.size)).astype(np.float32)


def _resident(field: str) -> int:
    with open("/proc/self/status") as stream:  # noqa: PTH123
        stated = next(line for line in stream if line.startswith(f"{field}:"))
    return int(stated.split()[1]) << 10


_use_one_thread()
if __name__ == "__main__":  # `measured.py PROGRAM FOLDER`: with other kernels, to compare with
    del sys.argv[0]
    _use_other_kernels()
    runpy.run_path(sys.argv[0], run_name="__main__")
