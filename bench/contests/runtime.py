"""Our runtime beside others: latency, memory and outputs of networks, operators and kernels."""

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from arenite.pipeline.contest.engines import ENGINES
from arenite.pipeline.making.calibration import convolutions
from arenite.pipeline.session import Session as ModelSession
from arenite.pipeline.targets.compiling import Compiled, Tuning, rules
from arenite.planner import Source
from arenite.planner.errors import AreniteError
from arenite.planner.rewrites.derivation import derive
from arenite.runtime import Session, processor_name
from arenite.runtime.program import program_pieces
from arenite.runtime.rewrites import DIRECT, all_by, measured
from arenite.runtime.targets.litert import PlannedInterpreter
from arenite.runtime.targets.onnxruntime import stock_options, stock_session
from arenite.runtime.targets.tflm import export_tflm
from arenite.strategies import find
from bench.harness.contest import TABLE, Asked, Cell, Row, chosen, contest, note, option
from bench.harness.engines import OURS, EngineError, compiled_entry, converted_peers, race
from bench.harness.inputs import light_networks, shared_onnx, shared_tflite, zoo_file, zoo_files
from bench.harness.measuring import interleaved, mean_processor_seconds, paired_ratios
from bench.quantised import dynamic_transformer, quantised_file, quantised_networks
from bench.zoo import NETWORKS, SEQUENCES

Array = NDArray[Any]
FLOAT_TFLITE = ("hello_world_float", "pretrainedResnet", "ultraface_rfb320", "vww_96_float")
TABLE_OF_TEN = (
    "resnet50", "inception-v3", "vgg16", "unet", "densenet121", "light_squeezenet",
    "mobilenet-v1", "mobilenet-v2", "light_shufflenet", "ultraface_rfb320",
)  # fmt: skip
MOST_DIFFERENCE = 1e-4
SEQUENCES_TITLE = "Networks of sequences"
SEQUENCE_PEERS = {
    "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "mnn": "MNN", "ncnn": "ncnn",
}  # fmt: skip
_RIGHT = 0.01
"""Most that outputs of an engine differ that computes the same network."""


@contest(
    {"Our runtime, relative to another's": {
        "model": "", "beside": "", "steps": "", "threads": "", "difference": ".0e",
        "latency": ".2f", "ms": ".2f", "theirs, ms": ".2f", "memory": ".2f", "arena, B": "",
    }, SEQUENCES_TITLE: {
        "network": "", **dict.fromkeys(SEQUENCE_PEERS.values(), ".2f"), "ours, ms": ".2f",
        "arena, B": "",
    }},
    models="every network of the onnx package and the zoo, and float models of ../shared",
    rounds=5,
    options=[
        option("--threads", default="1,2", help="numbers of threads (default: 1,2)"),
        option("--table", nargs="?", const=",".join(TABLE_OF_TEN), metavar="NAME,...",
               help="ten usual networks of floats, or those of these names"),
        option("--peers", action="store_true", help="beside OpenVINO, ncnn and MNN too"),
        option("--sequences", action="store_true",
               help="networks of sequences and of sound of the zoo, beside all, one thread"),
        option("--processor-time", action="store_true",
               help="measure processor time, on a machine with other work"),
        option("--seconds", type=float, default=0.5, help="seconds of a process (default: 0.5)"),
    ],
)  # fmt: skip
def native_runtime(asked: Asked) -> Iterator[Row]:
    """Our runtime beside ONNX Runtime and LiteRT: outputs, latency, memory.

    Each engine runs in fresh processes, in turn; a latency is the median over the rounds of the
    ratio of ours to the other's, so below 1 ours is faster. `--peers` adds OpenVINO, ncnn and
    MNN, where these are installed and take the model. `ARENITE_VECTORS=avx2` in the environment
    limits ours to AVX2.
    """
    if asked.given.sequences:
        paths = (*zoo_files(SEQUENCES, asked.folder), dynamic_transformer(asked.folder))
        yield from asked.each(paths, partial(_sequences, asked))
        return

    def models() -> Iterator[Path]:
        if asked.given.table:
            yield from table_models(asked.given.table.split(","), asked.folder)
            return
        yield from light_networks()
        yield from zoo_files(NETWORKS, asked.folder)
        yield from shared_onnx()
        yield from shared_tflite(FLOAT_TFLITE)

    for rows in asked.each(models(), partial(_beside, asked)):
        yield from rows


def table_models(names: Sequence[str], folder: Path) -> Iterator[Path]:
    """Yield the networks of these names that are there, written to a folder while needed."""
    stored = {path.stem: path for path in (*light_networks(), *shared_onnx())}
    for name in names:
        if name in stored:
            yield stored[name]
        elif name in (*NETWORKS, "vgg16"):
            path = zoo_file(name, folder)
            yield path
            path.unlink()
        else:
            note(f"{name}: left out: it is not in the zoo, nor in ../shared")


def _beside(asked: Asked, model: Path) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        entry = compiled_entry(model, Path(folder))
        has_peers = asked.given.peers and entry.model_format == "onnx"
        peers = dict(converted_peers(model, Path(folder))) if has_peers else {}
        engines = [entry.opponent, *(["openvino"] if asked.given.peers else [])]
        for count in map(int, asked.given.threads.split(",")):
            raced = race(
                entry, engines, asked.rounds, threads=count, peers=peers,
                may_drop=asked.given.peers, seconds=asked.given.seconds,
                by_processor_time=asked.given.processor_time,
            )  # fmt: skip
            own = raced.pop(OURS)
            for opponent, other in raced.items():
                off = difference(own.outputs, other.outputs)
                if opponent == entry.opponent:
                    asked.require(off <= MOST_DIFFERENCE, f"{model.stem}: outputs as {opponent}'s")
                ratio = own.latency_to(other)
                note(f"{model.stem}, threads {count}: {ratio.median:.2f} of {opponent}")
                rows.append({
                    "model": model.stem.removeprefix("light_"), "beside": opponent,
                    "steps": _counts(entry.backends), "threads": count, "difference": off,
                    "latency": ratio, "ms": statistics.median(own.latencies_ms),
                    "theirs, ms": statistics.median(other.latencies_ms),
                    "memory": own.peak_rss / other.peak_rss, "arena, B": entry.arena_bytes,
                })  # fmt: skip
    return rows


def _sequences(asked: Asked, model: Path) -> Row:
    """Return ratios of our latency to those of engines whose outputs are right, one thread."""
    with tempfile.TemporaryDirectory() as folder:
        entry = compiled_entry(model, Path(folder))
        raced = race(
            entry, ["onnxruntime", "openvino"], asked.rounds,
            peers=dict(converted_peers(model, Path(folder))), may_drop=True,
            seconds=asked.given.seconds, by_processor_time=asked.given.processor_time,
        )  # fmt: skip
    own = raced.pop(OURS)
    row: Row = {
        TABLE: SEQUENCES_TITLE, "network": model.stem,
        "ours, ms": statistics.median(own.latencies_ms), "arena, B": entry.arena_bytes,
    }  # fmt: skip
    for engine, other in raced.items():
        off = difference(own.outputs, other.outputs)
        note(f"{model.stem}: {own.latency_to(other).median:.2f} of {engine}, off by {off:.0e}")
        asked.require(engine != "onnxruntime" or off <= _RIGHT, f"{model.stem}: outputs")
        if off <= _RIGHT:
            row[SEQUENCE_PEERS[engine]] = own.latency_to(other)
    return row


def _counts(backends: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {backend}" for backend, count in backends.items())


def difference(ours: Sequence[Array], theirs: Sequence[Array]) -> float:
    """Return the largest difference of two sets of outputs, each relative to its largest.

    An engine that converts models may have outputs of several shapes in another order.
    """
    left = list(theirs)
    pairs = []
    for own in ours:
        fitting = (number for number, other in enumerate(left) if other.shape == own.shape)
        other = left.pop(next(fitting, 0))
        pairs.append((own.astype(np.float64), other.astype(np.float64)))
    return max(
        float(np.max(np.abs(a - b), initial=0.0) / max(np.max(np.abs(b), initial=0.0), 1e-12))
        for a, b in pairs
    )


QUANTISED = (
    "hello_world_int8", "keyword_scrambled", "kws_ref_model", "micro_speech_quantized",
    "mobilenet_v1_0.5_160_quant", "person_detect", "pretrainedResnet_quant",
    "tf2_mobilenet_v2_1.0_224_ptq", "vww_96_int8", "deeplabv3_mnv2_dm05_pascal_quant",
)  # fmt: skip


@contest(
    {"Quantised models on our runtime": {
        "model": "", "steps": "", "operators": "", "quanta (share that differ)": "",
        "arena, B": "", "others' arenas, B": "", "latency": ".2f",
    }},
    models="8-bit TFLite models of ../shared, and some of the zoo",
    rounds=5,
)  # fmt: skip
def quantised_models(asked: Asked) -> Iterator[Row]:
    """Quantised models on our runtime beside LiteRT, TensorFlow Lite Micro and ONNX Runtime.

    Outputs of the same random inputs are compared in quanta, the least difference of two integers
    or of two dequantised numbers: with LiteRT's XNNPACK delegate and reference kernels, or with
    ONNX Runtime. Latency is measured in fresh processes, in turn, one thread; below 1 ours is
    faster. The networks of the zoo have random weights and random calibration.
    """

    def models() -> Iterator[Path]:
        yield from shared_tflite(QUANTISED)
        for name in ("resnet50", "inception-v3"):
            yield quantised_file(name, asked.folder)
        yield from quantised_networks(asked.folder, ("mobilenet-v2", "blazeface", "resnet50"))

    for row in asked.each(models(), partial(_quantised, asked)):
        note(str(row["model"]))
        yield row


def _quantised(asked: Asked, model: Path) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        entry = compiled_entry(model, Path(folder), 3)
        with Session(entry.program) as session:
            names = [port.name for port in session.inputs]
            mine = [
                list(session.run(dict(zip(names, each, strict=True))).values())
                for each in entry.inputs
            ]
        agreement = []
        for label, run in _references(model, entry.model_format):
            try:
                agreement.append(f"{label}: {agreed(mine, [run(each) for each in entry.inputs])}")
            except (RuntimeError, ValueError):
                continue
        arenas = _arenas(model) if entry.model_format == "tflite" else {}
        latency: Cell = "-"
        try:
            raced = race(entry, [entry.opponent], asked.rounds)
            latency = raced[OURS].latency_to(raced[entry.opponent])
        except EngineError as error:
            note(str(error))
        asked.require("onnxruntime" not in entry.backends, f"{model.stem}: runs on our kernels")
        return {
            "model": model.stem, "steps": _counts(entry.backends), "operators": entry.num_steps,
            "quanta (share that differ)": "\n".join(agreement), "arena, B": entry.arena_bytes,
            "others' arenas, B": ", ".join(f"{name} {size:,}" for name, size in arenas.items()),
            "latency": latency,
        }  # fmt: skip


def _references(
    model: Path, kind: str
) -> Iterator[tuple[str, Callable[[list[Array]], list[Array]]]]:
    """Yield the other runtimes that run the model, by name."""
    if kind == "onnx":
        yield "onnxruntime", ENGINES[kind]["onnxruntime"](model, 1).run
        return
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    for label, resolver in (
        ("litert-xnnpack", OpResolverType.BUILTIN),
        ("litert-reference", OpResolverType.BUILTIN_REF),
    ):
        try:
            interpreter = Interpreter(str(model), experimental_op_resolver_type=resolver)
            interpreter.allocate_tensors()
        except (RuntimeError, ValueError):
            continue
        yield label, partial(_interpreted, interpreter)


def _interpreted(interpreter: Any, arrays: Sequence[Array]) -> list[Array]:
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def agreed(mine: Sequence[Sequence[Array]], theirs: Sequence[Sequence[Array]]) -> str:
    """Return the largest difference in quanta, the share that differs, and a changed top class."""
    quanta, num_different, count, same_top = 0.0, 0, 0, True
    for own, others in zip(mine, theirs, strict=True):
        for one, other in zip(own, others, strict=True):
            gaps = np.diff(np.unique(other)) if other.dtype.kind == "f" else np.ones(1)
            quantum = float(gaps.min()) if gaps.size else 1.0
            off = np.abs(one.astype(np.float64) - other.astype(np.float64)) / quantum
            quanta = max(quanta, float(off.max(initial=0)))
            num_different += int((off > 0.5).sum())
            count += off.size
            same_top = same_top and int(one.argmax()) == int(other.argmax())
    top = "" if same_top else ", other top"
    return f"{round(quanta, 2):g} ({num_different / max(count, 1):.2%}){top}"


def _arenas(model: Path) -> dict[str, int]:
    """Return the bytes of LiteRT's arena and of TensorFlow Lite Micro's, where they run."""
    found = {}
    try:
        stock = PlannedInterpreter(model, strategy=find("best"), keep_inputs=True).stock_bytes
        if stock is not None:
            found["litert"] = stock
    except (AreniteError, RuntimeError) as error:
        note(f"{model.stem}: LiteRT: {error}")
    try:
        export = export_tflm(model, find("best"), find("tflm"))
        if export.measured is not None:
            found["tflm"] = export.measured.stock.head
    except AreniteError as error:
        note(f"{model.stem}: TensorFlow Lite Micro: {error}")
    return found


STEPS: Mapping[str, str] = {
    "sigmoid": "(float[1,64,112,112] x) => (y) { y = Sigmoid(x) }",
    "tanh": "(float[1,64,112,112] x) => (y) { y = Tanh(x) }",
    "elu": "(float[1,64,112,112] x) => (y) { y = Elu(x) }",
    "erf": "(float[1,64,112,112] x) => (y) { y = Erf(x) }",
    "hard-swish": "(float[1,64,112,112] x) => (y) { y = HardSwish(x) }",
    "softmax": "(float[512,1000] x) => (y) { y = Softmax(x) }",
    "transposed-2-stride-2": "(float[1,128,64,64] x, float[128,64,2,2] w) => (y)"
    " { y = ConvTranspose<strides=[2,2]>(x, w) }",
    "transposed-3-stride-2": "(float[1,128,32,32] x, float[128,64,3,3] w) => (y)"
    " { y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(x, w) }",
    "transposed-4-stride-2": "(float[1,256,16,16] x, float[256,128,4,4] w) => (y)"
    " { y = ConvTranspose<strides=[2,2], pads=[1,1,1,1]>(x, w) }",
    "max-pool-3-stride-2": "(float[1,64,112,112] x) => (y)"
    " { y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x) }",
    "average-pool-3": "(float[1,192,35,35] x) => (y)"
    " { y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) }",
}
"""As ONNX's text; `w` is a constant."""
_ROUND_S = 0.03


@contest(
    {"Single operators, relative to ONNX Runtime": {
        "step": "", "latency": ".2f", "the step alone": ".2f", "ms": ".3f", "theirs, ms": ".3f",
        "difference": ".0e",
    }},
    rounds=9,
    options=[option("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))],
)  # fmt: skip
def single_steps(asked: Asked) -> Iterator[Row]:
    """Operators that networks have few of, beside ONNX Runtime.

    Models of one operator of floats, random inputs and weights. Both run in one process, one
    thread, in turn, processor time; below 1 ours is faster. Ours copies inputs in and outputs out,
    which changes the order of an image's axes; a network pays that once, so the step alone stands
    beside.
    """
    for name in chosen(asked.given.steps, STEPS, "step"):
        yield step_row(name, asked, _ROUND_S)


def step_row(name: str, asked: Asked, round_s: float) -> Row:
    """Return the measurements of an operator."""
    path = asked.folder / f"{name}.onnx"
    onnx.save(_step_model(STEPS[name]), path)
    theirs = stock_session(path, stock_options(num_threads=1))
    with ModelSession(path, strategy=find("best")) as session:
        (port,) = session.inputs
        feeds = {"x": np.random.default_rng(0).standard_normal(port.shape).astype(np.float32)}
        own, other = session.run(feeds)["y"], theirs.run(None, feeds)[0]
        port.view[...] = feeds["x"]
        runs: Mapping[str, Callable[[], object]] = {
            "ours": partial(session.run, feeds, copy=False),
            "alone": session.invoke,
            "theirs": partial(theirs.run, None, feeds),
        }
        seconds = interleaved(
            {way: partial(mean_processor_seconds, run, round_s) for way, run in runs.items()},
            asked.rounds,
        )
    off = float(np.abs(own - other).max() / np.abs(other).max())
    asked.require(off <= MOST_DIFFERENCE, f"{name}: outputs as ONNX Runtime's")
    return {
        "step": name, "latency": paired_ratios(seconds["ours"], seconds["theirs"]),
        "the step alone": paired_ratios(seconds["alone"], seconds["theirs"]),
        "ms": 1000 * statistics.median(seconds["ours"]),
        "theirs, ms": 1000 * statistics.median(seconds["theirs"]), "difference": off,
    }  # fmt: skip


def _step_model(text: str) -> onnx.ModelProto:
    """Return a model whose input `w`, if it has one, is a random constant."""
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> step ' + text)
    for each in [each for each in model.graph.input if each.name == "w"]:
        model.graph.input.remove(each)
        shape = [size.dim_value for size in each.type.tensor_type.shape.dim]
        values = np.random.default_rng(1).standard_normal(shape).astype(np.float32) / 32
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, "w"))
    return model


_MOST_BYTES = 16 << 20
"""Of an image: networks have no larger ones."""


@contest(
    {"Convolutions of 3 x 3, thousand millions of multiply-adds a second": {
        "channels": "", "size": "", "direct": ".1f", "2 x 2": ".1f", "4 x 4": ".1f",
        "scratch 2 x 2, B": "", "scratch 4 x 4, B": "", "difference 2 x 2": ".1e",
        "difference 4 x 4": ".1e",
    }},
    rounds=9,
)  # fmt: skip
def convolution_speeds(asked: Asked) -> Iterator[Row]:
    """Speeds of the kernels of 3 x 3 convolutions: the table by which the runtime selects them.

    One thread, processor time, kernels in turn, medians. Speeds are multiply-adds of the direct
    kernel a second, so that they can be compared; a tile takes fewer. Differences are relative to
    the largest result.
    """
    for channels in (16, 32, 64, 128, 256, 512):
        for size in (7, 14, 28, 56, 112, 224):
            if 4 * size * size * channels <= _MOST_BYTES:
                yield _convolution(channels, size, asked)


def _convolution(channels: int, size: int, asked: Asked) -> Row:
    program = convolutions("float32", (3,), size, channels)
    sessions, scratch = [], []
    for kernel in (DIRECT, 2, 4):
        found = derive(all_by(program, kernel), rules())
        (step,) = found.program.steps
        scratch.append(step.operator.scratch(found.program.operands(step)))
        compiled = Compiled(
            Source("layer", "", found.program, found.problem),
            tuning=Tuning(processor_name(), measured({})),
        )
        assembly = compiled.assemble(find("best")(found.problem))
        sessions.append(Session.of_pieces(list(program_pieces(assembly)), "layer"))
    image = np.random.default_rng(0).standard_normal((1, size, size, channels), np.float32)
    results = [next(iter(each.run({"x": image}).values())).copy() for each in sessions]
    times = [
        [mean_processor_seconds(each.profile, _ROUND_S) for each in sessions]
        for _ in range(asked.rounds)
    ]
    work = size * size * channels * channels * 9
    direct, two, four = (work / statistics.median(each) / 1e9 for each in zip(*times, strict=True))
    largest = float(np.abs(results[0]).max())
    offs = [float(np.abs(each - results[0]).max()) / largest for each in results[1:]]
    asked.require(max(offs) <= 2e-5, f"{channels} channels, {size} x {size}: equal results")
    return {
        "channels": channels, "size": size, "direct": direct, "2 x 2": two, "4 x 4": four,
        "scratch 2 x 2, B": scratch[1], "scratch 4 x 4, B": scratch[2],
        "difference 2 x 2": offs[0], "difference 4 x 4": offs[1],
    }  # fmt: skip
