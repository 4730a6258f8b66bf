"""Several models in one arena, beside arenas of their own and the shared one of TFLM."""

import itertools
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from arenite.pipeline.base.observing import SearchLimits
from arenite.pipeline.base.placing import configured, place
from arenite.pipeline.making.programs import random_array
from arenite.pipeline.session import Session
from arenite.pipeline.systems import SystemDescription, SystemModel, plan_for_tflm, plan_system
from arenite.pipeline.systems.apart import place_apart
from arenite.pipeline.systems.joining import join, prefixed
from arenite.pipeline.targets.compiling import rules
from arenite.planner import DType, Program, Step, Tensor, TensorKind, derive
from arenite.planner.errors import AreniteError
from arenite.planner.operators import Operator
from arenite.planner.programs import Section, SectionKind
from arenite.runtime import System
from arenite.runtime.targets.tflm import read_tflm_model
from arenite.strategies import find
from bench.harness.contest import TABLE, Asked, Row, contest, note
from bench.harness.inputs import SHARED_ONNX, SHARED_TFLITE, package_file, reading_of, zoo_file
from bench.harness.measuring import in_fresh_process
from bench.harness.shared_micro import shared_bytes
from bench.zoo.builder import NetworkBuilder

SYSTEMS: Mapping[str, Sequence[str]] = {
    "blazeface, face mesh": ("zoo:blazeface", "zoo:face-mesh"),
    "face detection, landmarks, iris": (
        "face_detection_front.tflite", "face_landmark.tflite", "iris_landmark.tflite",
    ),
    "palm detection, face landmarks": ("mp_palm_detection_lite.tflite", "face_landmark.tflite"),
    "wake word, keywords": ("mww_okay_nabu.tflite", "kws_ref_model.tflite"),
    "person detection, keywords": ("person_detect.tflite", "kws_ref_model.tflite"),
    "visual wake word, keywords": ("vww_96_int8.tflite", "kws_ref_model.tflite"),
    "person detection, wake word, keywords": (
        "person_detect.tflite", "mww_okay_nabu.tflite", "kws_ref_model.tflite",
    ),
    "wake word, speech recognition": (
        "mww_okay_nabu.tflite", "zoo:whisper-tiny-encoder", "zoo:whisper-tiny-decoder",
    ),
    "visual wake word, keywords, anomaly": (
        "vww_96_int8.tflite", "kws_ref_model.tflite", "ad_toycar_hybrid.tflite",
    ),
    "faces, keywords, noise": (
        "ultraface_rfb320.onnx", "mlt_kws_ref_model.onnx", "dtln_noise_suppression.tflite",
    ),
    "lines of text found, read": (
        "rapidocr_onnxruntime:ch_PP-OCRv4_det_infer.onnx",
        "rapidocr_onnxruntime:ch_PP-OCRv4_rec_infer.onnx",
    ),
}  # fmt: skip
"""Of each system its models: of `../shared`, of the zoo, or of an installed package."""
_LINE, _AT_ONCE = "one after another", "at once"


@contest(
    {"Arena of several models, bytes": {
        "models": "", "schedule": "", "sum": "", "largest": "", "ours": "", "bound": "",
        "saved": ".1%", "TFLM, shared": "", "TFLM, our plan": "", "records": "",
        "placed in, s": ".2f", "orders run": "",
    }},
    models="zoo, pairs and triples of ../shared, a pair of rapidocr-onnxruntime",
)  # fmt: skip
def systems(asked: Asked) -> Iterator[Row]:
    """The arena of pairs and triples of models, one after another in any order and at once.

    Every order runs on memory that is poisoned, its outputs compared bit for bit with those of
    each model in an arena of its own. `TFLM, shared` is what interpreters of TensorFlow Lite Micro
    take that share one allocator, as it counts them, head and tails: its tails hold structures
    that our runtime has beside the arena, those of a 64-bit host. `TFLM, our plan` is the same
    with the models that `arenite export --to tflm` writes. Both ran every order, too.
    """
    with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
        for title, names in SYSTEMS.items():
            paths = [_file(name, Path(folder)) for name in names]
            if not all(path.is_file() for path in paths):
                continue
            theirs, ours = _shared_arenas(_described(paths, SectionKind.ANY_ORDER))
            alike = "other outputs" not in (theirs, ours)
            asked.require(alike, f"{title}: same bits in a shared arena of TensorFlow Lite Micro")
            for schedule, kind in (
                (_LINE, SectionKind.ANY_ORDER), (_AT_ONCE, SectionKind.AT_ONCE)
            ):  # fmt: skip
                row = _row(_described(paths, kind), Path(folder))
                asked.require(bool(row.pop("holds")), f"{title}, {schedule}: same bits, no more")
                yield {
                    "models": title, "schedule": schedule, **row,
                    "TFLM, shared": theirs, "TFLM, our plan": ours,
                }  # fmt: skip


_JOINT, _FROM_FILES = "Joint problems of three models", "Three models from their files"


@contest(
    {
        _JOINT: {
            "records": "", "schedule": "", "height": "", "bound": "", "above": ".2%",
            "strategy": "", "processor time, s": ".1f",
        },
        _FROM_FILES: {
            "operators": "", "records": "", "height": "", "bound": "", "placed in, s": ".1f",
            "all in, s": ".0f",
        },
    },
    models="random",
)  # fmt: skip
def joint_problems(asked: Asked) -> Iterator[Row]:
    """Placement of three random models with states in one arena by `best`, within 10 s.

    Each step reads the result of the one before it and up to two of the last twelve. Models that
    run at once are placed on their own first, in a third of the time each.

    `Three models from their files` is all that `arenite system` does with ONNX files of random
    convolutions: reads, lowers and plans each model alone, places all records, checks the program.
    Seconds are of the processor.
    """
    names = ("a", "b", "c")
    yield _row_from_files(asked, names)
    for total in (2_000, 5_000, 10_000):
        for kind in (SectionKind.SEQUENCE, SectionKind.AT_ONCE):
            models = {name: SystemModel(Path(name)) for name in names}
            programs = {
                name: prefixed(_random_program(total // len(names), seed), name)
                for seed, name in enumerate(names)
            }
            joined = join(SystemDescription("random", models, Section(kind, names)), programs)
            found = derive(joined, replace(rules(), outlines=True))
            parts = len(names) if kind is SectionKind.AT_ONCE else 1
            started = time.process_time()
            limit = _SECONDS / parts
            outcome = place_apart(
                configured(find("best"), time_limit_s=limit), found.program, found.problem,
                SearchLimits(limit),
            )  # fmt: skip
            seconds = time.process_time() - started
            plan = outcome.plan
            asked.require(
                plan.gap <= _MOST_ABOVE and seconds < _SECONDS, f"{total} records, {kind}"
            )
            yield {
                TABLE: _JOINT, "records": len(found.problem.records),
                "schedule": str(kind).replace("_", " "),
                "height": plan.height, "bound": plan.lower_bound, "above": plan.gap,
                "strategy": plan.strategy, "processor time, s": seconds,
            }  # fmt: skip


_SECONDS, _MOST_ABOVE = 10.0, 0.0


def _row_from_files(asked: Asked, names: Sequence[str]) -> Row:
    models, operators = {}, 0
    for seed, name in enumerate(names):
        network = _random_network(3_400, seed)
        operators += len(network.graph.node)
        models[name] = SystemModel(asked.folder / f"{name}.onnx")
        onnx.save(network, models[name].path)
    section = Section(SectionKind.SEQUENCE, tuple(names))
    started = time.process_time()
    planned = plan_system(SystemDescription("random", models, section))
    seconds = time.process_time() - started
    started = time.process_time()
    placed = place(find("best"), planned.problem, SearchLimits(_SECONDS))
    placing = time.process_time() - started
    asked.require(placed.plan.optimal and placing < _SECONDS, "three files, placed in 10 s")
    return {
        TABLE: _FROM_FILES, "operators": operators, "records": len(planned.problem.records),
        "height": planned.height, "bound": planned.lower_bound, "placed in, s": placing,
        "all in, s": seconds,
    }  # fmt: skip


def _random_network(num_operators: int, seed: int) -> onnx.ModelProto:
    """Return convolutions, each of the result before it and up to two of the last twelve."""
    net, generator = NetworkBuilder(f"random_{seed}"), random.Random(seed)
    made, count = [net.input("x", 1, 8, 12, 12)], 0
    while count < num_operators:
        last = made[-12:]
        read = [last[-1], *(generator.choice(last) for _ in range(generator.randrange(3)))]
        read = list(dict.fromkeys(read))
        y = net.concat(read) if len(read) > 1 else read[0]
        y = net.conv(y, generator.choice((4, 8, 16, 24, 32)))
        count += 1 + (len(read) > 1)
        if generator.random() < 0.5:
            y = net.depthwise(y)
            count += 1
        made.append(y)
    net.output(net.conv(net.concat(made[-3:]), 8), "y")
    return net.build()


def _random_program(num_steps: int, seed: int) -> Program:
    """Return a program of opaque steps, one state for each 200."""
    generator = random.Random(seed)

    def tensor(name: str, kind: TensorKind, most: int = 4_000) -> Tensor:
        return Tensor(name, DType.UINT8, (64 * generator.randrange(1, most),), kind)

    tensors, steps = [tensor("x", TensorKind.INPUT)], []
    for number in range(num_steps):
        last = [each.name for each in tensors[-12:]]
        read = [last[-1], *(generator.choice(last) for _ in range(generator.randrange(3)))]
        tensors.append(tensor(f"t{number}", TensorKind.ACTIVATION))
        steps.append(
            Step(f"s{number}", Operator(), tuple(dict.fromkeys(read)), (tensors[-1].name,))
        )
    states = [
        tensor(f"state{each}", TensorKind.STATE, 400) for each in range(max(1, num_steps // 200))
    ]
    return Program.of(f"model {seed}", [*tensors, *states], steps, ("x",), (tensors[-1].name,))


def _file(name: str, folder: Path) -> Path:
    package, colon, file = name.partition(":")
    if package == "zoo":
        return zoo_file(file, folder)
    if colon:
        return package_file(package, f"models/{file}")
    return (SHARED_TFLITE if name.endswith(".tflite") else SHARED_ONNX) / name


def _described(paths: Sequence[Path], kind: SectionKind) -> SystemDescription:
    models = {}
    for number, path in enumerate(paths):
        reading = reading_of(path)
        models[f"m{number}"] = SystemModel(path, dims=reading.dims, shapes=reading.shapes)
    return SystemDescription("system", models, Section(kind, tuple(models)))


def _row(description: SystemDescription, folder: Path) -> Row:
    planned = plan_system(description)
    output = folder / "system.arena"
    planned.write(output)
    total, largest = sum(planned.alone.values()), max(planned.alone.values())
    orders = list(itertools.permutations(description.models))
    same = all(
        _runs_alike(output, description.models, orders, poison)
        for poison in (0x00, 0xFF)
    )  # fmt: skip
    return {
        "sum": total, "largest": largest, "ours": planned.height,
        "bound": planned.lower_bound, "saved": 1 - planned.height / total,
        "records": len(planned.problem.records), "placed in, s": planned.built.outcome.seconds,
        "orders run": len(orders), "holds": same and largest <= planned.height <= total,
    }  # fmt: skip


def _runs_alike(
    program: Path, models: Mapping[str, SystemModel], orders: Sequence[Sequence[str]], poison: int
) -> bool:
    """Tell whether models have the outputs in every order that they have alone."""
    generator = np.random.default_rng(0)
    given, expected = {}, {}
    for name, model in models.items():
        with Session(model.path, dims=model.dims, shapes=model.shapes) as session:
            given[name] = {
                port.name: random_array(generator, port.dtype, port.shape)
                for port in session.inputs
            }
            expected[name] = session.run(given[name])
    for order in orders:
        with System(program, poison=poison) as system:
            for name in order:
                found = system[name].run(given[name])
                if any(found[key].tobytes() != each.tobytes()
                       for key, each in expected[name].items()):  # fmt: skip
                    return False
    return True


def _shared_arenas(description: SystemDescription) -> tuple[int | str, int | str]:
    """Return the bytes of a shared arena of TensorFlow Lite Micro, with its plans and with ours.

    Or why they are not known.
    """
    if any(path.suffix != ".tflite" for path in description.paths):
        return "TFLite only", "TFLite only"
    try:
        planned = plan_for_tflm(description)
    except AreniteError as error:
        note(f"TensorFlow Lite Micro: {error}")
        return "does not run", "does not run"
    if planned.not_measured:
        note(f"TensorFlow Lite Micro: {planned.not_measured}")
        return "does not run", "does not run"
    programs = [read_tflm_model(path).program for path in description.paths]
    theirs, ours, same = in_fresh_process(
        shared_bytes,
        [path.read_bytes() for path in description.paths],
        [member.data for member in planned.members.values()],
        [(len(each.inputs), len(each.outputs)) for each in programs],
    )
    return (theirs, ours) if same else ("other outputs", "other outputs")
