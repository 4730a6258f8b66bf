"""Several models in one arena, beside arenas of their own and the shared one of TFLM."""

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from arenite.pipeline.making.programs import random_array
from arenite.pipeline.session import Session
from arenite.pipeline.systems import SystemDescription, SystemModel, plan_system
from arenite.planner.errors import AreniteError
from arenite.planner.programs import Section, SectionKind
from arenite.runtime import System
from arenite.runtime.targets.tflm import measure_arena, read_tflm_model
from bench.harness.contest import Asked, Row, contest
from bench.harness.inputs import SHARED_ONNX, SHARED_TFLITE, zoo_file

SYSTEMS: Mapping[str, Sequence[str]] = {
    "blazeface, face mesh": ("zoo:blazeface", "zoo:face-mesh"),
    "face detection, landmarks, iris": (
        "face_detection_front.tflite", "face_landmark.tflite", "iris_landmark.tflite",
    ),
    "palm detection, face landmarks": ("mp_palm_detection_lite.tflite", "face_landmark.tflite"),
    "wake word, keywords": ("mww_okay_nabu.tflite", "kws_ref_model.tflite"),
    "person detection, keywords": ("person_detect.tflite", "kws_ref_model.tflite"),
    "visual wake word, keywords, anomaly": (
        "vww_96_int8.tflite", "kws_ref_model.tflite", "ad_toycar_hybrid.tflite",
    ),
    "faces, keywords, noise": (
        "ultraface_rfb320.onnx", "mlt_kws_ref_model.onnx", "dtln_noise_suppression.tflite",
    ),
}  # fmt: skip
_LINE, _AT_ONCE = "one after another", "at once"


@contest(
    {"Arena of several models, bytes": {
        "models": "", "schedule": "", "sum": "", "largest": "", "ours": "", "bound": "",
        "saved": ".1%", "TFLM, shared": "", "records": "", "placed in, s": ".2f",
        "orders run": "",
    }},
    models="zoo, pairs and triples of ../shared",
)  # fmt: skip
def systems(asked: Asked) -> Iterator[Row]:
    """The arena of pairs and triples of models, one after another in any order and at once.

    Every order runs on memory that is poisoned, its outputs compared bit for bit with those of
    each model in an arena of its own. `TFLM, shared` is the largest head that the interpreter of
    TensorFlow Lite Micro was measured to plan, and all their tails: what its shared arena takes,
    apart from the bytes that aligning takes; structures there are those of a 64-bit host.
    """
    with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
        for title, names in SYSTEMS.items():
            paths = [_file(name, Path(folder)) for name in names]
            if not all(path.is_file() for path in paths):
                continue
            theirs = _shared_arena(paths)
            for schedule, kind in (
                (_LINE, SectionKind.ANY_ORDER), (_AT_ONCE, SectionKind.AT_ONCE)
            ):  # fmt: skip
                row = _row(paths, kind, Path(folder))
                asked.require(bool(row.pop("holds")), f"{title}, {schedule}: same bits, no more")
                yield {"models": title, "schedule": schedule, **row, "TFLM, shared": theirs}


def _file(name: str, folder: Path) -> Path:
    if name.startswith("zoo:"):
        return zoo_file(name.removeprefix("zoo:"), folder)
    return (SHARED_TFLITE if name.endswith(".tflite") else SHARED_ONNX) / name


def _row(paths: Sequence[Path], kind: SectionKind, folder: Path) -> Row:
    names = [f"m{number}" for number in range(len(paths))]
    description = SystemDescription(
        "system",
        {name: SystemModel(path) for name, path in zip(names, paths, strict=True)},
        Section(kind, tuple(names)),
    )
    planned = plan_system(description)
    output = folder / "system.arena"
    planned.write(output)
    total, largest = sum(planned.alone.values()), max(planned.alone.values())
    orders = list(itertools.permutations(names))
    same = all(_runs_alike(output, dict(zip(names, paths, strict=True)), orders, poison)
               for poison in (0x00, 0xFF))  # fmt: skip
    return {
        "sum": total, "largest": largest, "ours": planned.height,
        "bound": planned.lower_bound, "saved": 1 - planned.height / total,
        "records": len(planned.problem.records), "placed in, s": planned.built.outcome.seconds,
        "orders run": len(orders), "holds": same and largest <= planned.height <= total,
    }  # fmt: skip


def _runs_alike(
    program: Path, paths: Mapping[str, Path], orders: Sequence[Sequence[str]], poison: int
) -> bool:
    """Tell whether models have the outputs in every order that they have alone."""
    generator = np.random.default_rng(0)
    given, expected = {}, {}
    for name, path in paths.items():
        with Session(path) as session:
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


def _shared_arena(paths: Sequence[Path]) -> int | str:
    """Return the bytes of a shared arena of TensorFlow Lite Micro, or why it is not known."""
    head, tails = 0, 0
    for path in paths:
        if path.suffix != ".tflite":
            return "TFLite only"
        try:
            model = read_tflm_model(path)
            ports = len(model.program.inputs), len(model.program.outputs)
            measured = measure_arena(path, *ports)
        except AreniteError:
            return "does not run"
        head, tails = max(head, measured.head), tails + measured.tail
    return head + tails
