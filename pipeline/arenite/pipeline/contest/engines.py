"""Engines that run a model, under one interface."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from arenite.planner.errors import MissingDependencyError

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Engine:
    """A model, loaded and ready.

    Attributes:
        run: Runs it once; inputs and outputs are in the model's order.
        arena_bytes: Asked after a run; None where the engine does not say.
        repeat: Runs it again on the same inputs without copying; None where that is impossible.
    """

    run: Callable[[list[Array]], list[Array]]
    arena_bytes: Callable[[], int | None]
    repeat: Callable[[], object] | None = None


Load: TypeAlias = Callable[[Path, int], Engine]


def _arenite(path: Path, threads: int) -> Engine:
    from arenite.runtime import Session

    session = Session(path, threads=threads)
    names = [port.name for port in session.inputs]

    def run(arrays: list[Array]) -> list[Array]:
        if session.states.length:  # each run begins a text
            session.states.reset()
        return list(session.run(dict(zip(names, arrays, strict=True))).values())

    return Engine(run, lambda: session.arena_bytes)


def _onnxruntime(path: Path, threads: int) -> Engine:
    from arenite.runtime.targets import stock_options, stock_session

    options = stock_options(num_threads=threads)
    options.inter_op_num_threads = 1
    session = stock_session(path, options)
    names = [value.name for value in session.get_inputs()]
    return Engine(
        lambda arrays: list(session.run(None, dict(zip(names, arrays, strict=True)))), lambda: None
    )


def _onnxruntime_planned(path: Path, threads: int) -> Engine:
    from arenite.runtime.targets import PlannedSession
    from arenite.strategies import find

    session = PlannedSession(path, strategy=find("best"), num_threads=threads)
    names = [value.name for value in session.get_inputs()]
    return Engine(
        lambda arrays: list(session.run(None, dict(zip(names, arrays, strict=True)))),
        lambda: None if session.plan is None else session.plan.height,
    )


def _litert(path: Path, threads: int) -> Engine:
    return _litert_engine(path, threads, with_xnnpack=False)


def _litert_xnnpack(path: Path, threads: int) -> Engine:
    return _litert_engine(path, threads, with_xnnpack=True)


def _litert_engine(path: Path, threads: int, *, with_xnnpack: bool) -> Engine:
    try:
        from ai_edge_litert import interpreter as package
    except ModuleNotFoundError:
        from tflite_runtime import interpreter as package
    resolvers = package.OpResolverType
    interpreter = package.Interpreter(
        str(path),
        num_threads=threads,
        experimental_op_resolver_type=resolvers.BUILTIN
        if with_xnnpack
        else resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    return _interpreted(interpreter, lambda: None)


def _litert_planned(path: Path, threads: int) -> Engine:
    from arenite.runtime.targets import PlannedInterpreter
    from arenite.strategies import find

    interpreter = PlannedInterpreter(path, strategy=find("best"), num_threads=threads)
    return _interpreted(interpreter, lambda: interpreter.arena_bytes)


def _interpreted(interpreter: Any, arena_bytes: Callable[[], int | None]) -> Engine:
    inputs = [detail["index"] for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def run(arrays: list[Array]) -> list[Array]:
        for index, array in zip(inputs, arrays, strict=True):
            interpreter.set_tensor(index, array)
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]

    return Engine(run, arena_bytes, interpreter.invoke)


def _openvino(path: Path, threads: int) -> Engine:
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32",
    }  # fmt: skip
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()

    def run(arrays: list[Array]) -> list[Array]:
        return list(request.infer(dict(enumerate(arrays))).to_tuple())

    return Engine(run, lambda: None, request.infer)


def _ncnn(path: Path, threads: int) -> Engine:
    import ncnn
    import numpy as np

    network = ncnn.Net()
    network.opt.num_threads = threads
    # 32 bits as all others: on ARMv8.2 it would compute in 16.
    network.opt.use_fp16_packed = network.opt.use_fp16_storage = False
    network.opt.use_fp16_arithmetic = False
    if network.load_param(str(path)) or network.load_model(str(path.with_suffix(".bin"))):
        raise RuntimeError(f"ncnn does not load {path.name}")
    inputs, outputs = list(network.input_names()), list(network.output_names())

    def run(arrays: list[Array]) -> list[Array]:
        extractor = network.create_extractor()
        for each, array in zip(inputs, arrays, strict=True):
            extractor.input(each, ncnn.Mat(array[0]))  # it knows of no batches
        found = []
        for each in outputs:
            code, made = extractor.extract(each)
            if code:
                raise RuntimeError(f"ncnn fails with {code}")
            found.append(np.array(made)[np.newaxis])
        return found

    return Engine(run, lambda: None)


def _mnn(path: Path, threads: int) -> Engine:
    import MNN
    import numpy as np

    network = MNN.Interpreter(str(path))
    session = network.createSession({"backend": "CPU", "numThread": threads, "precision": "high"})
    inputs = list(network.getSessionInputAll(session).values())
    outputs = list(network.getSessionOutputAll(session).values())

    def tensor(like: Any, array: Array) -> Any:
        return MNN.Tensor(
            like.getShape(), MNN.Halide_Type_Float, np.ascontiguousarray(array),
            MNN.Tensor_DimensionType_Caffe,
        )  # fmt: skip

    def run(arrays: list[Array]) -> list[Array]:
        for each, array in zip(inputs, arrays, strict=True):
            each.copyFrom(tensor(each, array))
        network.runSession(session)
        found = []
        for each in outputs:
            made = np.empty(each.getShape(), np.float32)
            each.copyToHostTensor(held := tensor(each, made))
            found.append(np.array(held.getNumpyData()).reshape(made.shape))
        return found

    return Engine(run, lambda: None, lambda: network.runSession(session))


OURS = "arenite"
ENGINES: Mapping[str, Mapping[str, Load]] = {
    "onnx": {
        OURS: _arenite,
        "onnxruntime": _onnxruntime,
        "onnxruntime-planned": _onnxruntime_planned,
        "openvino": _openvino,
    },
    "tflite": {
        OURS: _arenite,
        "litert": _litert,
        "litert-xnnpack": _litert_xnnpack,
        "litert-planned": _litert_planned,
        "openvino": _openvino,
    },
}
"""For each format, the engines that run it. Ours runs the `.arena` file made of it."""

CONVERTED: Mapping[str, Load] = {"ncnn": _ncnn, "mnn": _mnn}
"""Engines that run files of their own formats, which benchmarks convert."""

_ORT = (("onnxruntime",), "onnx")
_LITERT = (("ai_edge_litert", "tflite_runtime"), "litert")
_NEEDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "onnxruntime": _ORT,
    "onnxruntime-planned": _ORT,
    "litert": _LITERT,
    "litert-xnnpack": _LITERT,
    "litert-planned": _LITERT,
    "openvino": (("openvino",), "openvino"),
}
"""Packages, any of which will do, and the extra that brings the first."""


def check_installed(engine: str) -> None:
    """Return if an engine's package is there.

    Raises:
        MissingDependencyError: It is not.
    """
    packages, extra = _NEEDS.get(engine, ((), ""))
    if packages and not any(find_spec(package) for package in packages):
        raise MissingDependencyError(packages[0], extra, f"engine {engine!r}")
