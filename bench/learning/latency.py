"""One step of training in our runtime and in ONNX Runtime, each in a process of its own.

Neither process imports more than its runtime needs, so that their peaks of memory can be compared.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.cli.planning.programs import build_program
from arenite.cli.targets.reading import Reading
from arenite.training.prepare import read_for_training
from arenite.training.step import Recipe, make_step
from arenite.training.writing import write_step
from harness.processes import peak_rss_bytes
from zoo import mobilenet_v2, resnet50, unet

Arrays: TypeAlias = dict[str, NDArray[Any]]

BATCH = 2
_FEWEST_STEPS = 3


def networks() -> Iterator[tuple[str, onnx.ModelProto, str]]:
    """Yield networks with their loss: those of the digits too, where PyTorch makes them."""
    try:
        from digits.networks import lenet, perceptron, to_onnx, weights_of
    except ImportError:
        pass
    else:
        for name, make in (("lenet-300-100", perceptron), ("lenet-5", lenet)):
            module = make()
            yield name, to_onnx(module, weights_of(module), "digits"), "cross-entropy"
    yield "mobilenet-v2, 64 px", mobilenet_v2.network(64, 10), "cross-entropy"
    yield "resnet50, 64 px", resnet50.network(64, 10), "cross-entropy"
    yield "unet, 32 px", unet.network(32), "bce"


def prepare(folder: Path, model: onnx.ModelProto, loss: str, batch: int = BATCH) -> None:
    """Write a step for both runtimes, with what it is fed."""
    onnx.save(model, folder / "model.onnx")
    step = make_step(
        read_for_training(folder / "model.onnx", batch), Recipe(loss, "momentum", 1e-3)
    )
    write_step(folder / "step.onnx", step.model)
    build_program(folder / "step.onnx", folder / "step.arena", reading=Reading())
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {
        name: random.standard_normal(each.shape, np.float32)
        if name == "image"
        else random.integers(0, 2, each.shape).astype(each.dtype.label)
        for name, each in step.inputs.items()
    }
    np.savez(folder / "feeds.npz", **feeds)
    initial = {each.name: each for each in step.model.graph.initializer}
    states: dict[str, Any] = {
        name: onnx.numpy_helper.to_array(initial[name])
        if name in initial
        else np.zeros(each.shape, np.float32)
        for name, each in step.state_types.items()
    }
    np.savez(folder / "states.npz", **states)
    (folder / "states.json").write_text(json.dumps(step.states))


def ours(folder: str, seconds: float) -> tuple[float, int]:
    """Return the processor seconds of a step in our runtime, and the bytes of the process."""
    from arenite.runtime.session import Session

    with np.load(Path(folder) / "feeds.npz") as saved:
        feeds = dict(saved)
    with Session(Path(folder) / "step.arena") as session:
        return _median(lambda: session.run(feeds), seconds), peak_rss_bytes()


def theirs(folder: str, seconds: float) -> tuple[float, int]:
    """Return the same for ONNX Runtime, which is handed each state anew."""
    import onnxruntime

    feeds: Arrays = {}
    for name in ("feeds.npz", "states.npz"):
        with np.load(Path(folder) / name) as saved:
            feeds.update(saved)
    replaced_by: dict[str, str] = json.loads((Path(folder) / "states.json").read_text())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(Path(folder) / "step.onnx"), options)
    names = [each.name for each in session.get_outputs()]

    def step() -> None:
        made = dict(zip(names, session.run(names, feeds), strict=True))
        feeds.update({state: made[new] for state, new in replaced_by.items()})

    return _median(step, seconds), peak_rss_bytes()


def _median(step: Callable[[], object], seconds: float) -> float:
    step()
    found: list[float] = []
    while len(found) < _FEWEST_STEPS or sum(found) < seconds:
        begin = time.process_time()
        step()
        found.append(time.process_time() - begin)
    return statistics.median(found)
