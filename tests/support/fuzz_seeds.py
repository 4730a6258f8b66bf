"""Valid files of every kind, for fuzzers to begin with.

    PYTHONPATH=tests python -m support.fuzz_seeds FOLDER

writes them to `FOLDER/programs`, `weights` (coded ones), `onnx`, `tflite`, `plan` and `csv`.
"""

import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from arenite.pipeline.base import Reading
from arenite.pipeline.making import build_program
from arenite.runtime.program import write_assembly
from arenite.runtime.rewrites import Activations, Loading, WeightBudget
from support.banded_programs import Network, Sliding, in_bands
from support.coded_programs import build_coded, code, network, shared_weights
from support.hostile_files import subjects
from support.hostile_steps import SOUND
from support.one_step import Given, constant, one_step
from support.ranged_programs import range_of
from support.row_programs import image, program_by_rows
from support.running import MANY_KINDS, build
from support.tiny_onnx import parse, save, with_random_weights
from support.tiny_programs import classifier

_LIMITS: Final = np.array([[2**31 - 1, 2**31 - 1], [-(2**31), -(2**31)]], np.int32)


def networks(folder: Path) -> Iterator[Path]:
    """Write programs of whole networks: float, quantised, of many kinds, coded, streamed."""
    yield from (classifier(folder, quantised=quantised) for quantised in (False, True))
    model = save(folder, with_random_weights(parse(MANY_KINDS)))
    yield build(model, folder)
    halves = folder / "halves.arena"
    build_program(model, halves, reading=Reading(activations=Activations.FP16))
    yield halves
    for budget in (None, WeightBudget(30, is_percent=True, loading=Loading.BESIDE)):
        place = folder / ("all" if budget is None else "streamed")
        place.mkdir()
        yield build_coded(network(place, num_values=32, density=0.3), place, budget)[0]


def overflowing(folder: Path) -> Iterator[Path]:
    """Write programs that reduce integers to what does not fit them."""
    for function in ("sum", "product", "l1", "sum_square"):
        path = folder / f"{function}.arena"
        reduce = {"function": function, "axes": [1]}
        pieces = one_step("Reduce", reduce, [constant(_LIMITS)], [Given((2,), "int32")])
        path.write_bytes(b"".join(pieces))
        yield path


def banded(folder: Path) -> Path:
    """Write a program that runs in bands of rows, which lie anywhere."""
    layers = Network((9, 5, 4))
    first = layers.conv(4, Sliding((3, 3), padding=(1, 1, 1, 1)))
    layers.depthwise(Sliding((3, 3), padding=(1, 1, 1, 1)), addend=first)
    layers.product(3)
    path = folder / "banded.arena"
    path.write_bytes(layers.file(in_bands(layers, [2]), scatter=random.Random(0)))
    return path


def by_rows(folder: Path) -> Iterator[Path]:
    """Write programs of one step each, by rows that lie anywhere."""
    x, y, weights = image(6, 5, 3), image(3, 5, 3), constant(np.ones((2, 3, 2, 3), np.float32))
    taps = {"row_low": [0, 2, 4], "column_low": [0, 1, 2, 3, 4]}
    move = {"shape": [6, 5, 3], "input_strides": [15, 3, 1], "output_strides": [30, 6, 1]}
    joined = [move, move | {"input": 1, "output_start": 3}]
    window = {"kind": "average", "window": [6, 5]}
    cases: list[tuple[str, dict[str, Any], list[Given], Given, list[tuple[int, int]]]] = [
        ("Pool2D", {"kind": "maximum", "window": [2, 1], "strides": [2, 1]}, [x], y, [(0, 3)]),
        ("Pool2D", window, [x], image(1, 1, 3), [(0, 2), (2, 4)]),
        ("Binary", {}, [x, constant(np.ones(3, np.float32))], x, [(0, 4), (4, 2)]),
        ("Softmax", {}, [x], x, [(0, 4), (4, 2)]),
        ("Resize2D", taps, [x], y, [(0, 1), (1, 2)]),
        ("Copy", {"moves": joined}, [x, x], image(6, 5, 6), [(0, 4), (4, 2)]),
        ("TransposedConv2D", {"strides": [2, 1]}, [x, weights], image(13, 6, 2), [(0, 9), (9, 4)]),
    ]
    for kind, kernel, inputs, output, bands in cases:
        data = program_by_rows(
            kind, kernel, inputs, output, bands=bands, scratch=64, draw=random.Random(0),
            gathers=kernel is not window,
        )  # fmt: skip
        path = folder / f"rows-{kind}-{'sums' if kernel is window else 'made'}.arena"
        path.write_bytes(data)
        yield path


def steps(folder: Path) -> Iterator[Path]:
    """Write a program of one step for every kind of step."""
    for name, step in SOUND.items():
        path = folder / f"step-{name.replace(' ', '-')}.arena"
        path.write_bytes(step.to_bytes())
        yield path


def programs(folder: Path) -> list[Path]:
    """Write what runs in every way that there is."""
    return [
        *networks(folder), *overflowing(folder), banded(folder), *by_rows(folder),
        *of_ranges(folder),
    ]  # fmt: skip


def of_ranges(folder: Path) -> Iterator[Path]:
    """Write programs for a range of sizes."""
    for name in ("text", "images"):
        path = folder / f"{name}-of-any-size.arena"
        write_assembly(path, range_of(folder, name)[1])
        yield path


def codes() -> Iterator[tuple[str, bytes]]:
    """Yield codes of weights, behind the number of their elements, by name."""
    for number, (density, num_values) in enumerate(
        ((1.0, 4), (1.0, 32), (0.5, 16), (0.1, 32), (0.02, 200), (0.3, 2))
    ):
        for count in (90, 1500):
            coded = code(shared_weights(count, density, num_values, number))
            if coded is not None:
                yield f"{count}-{density}-{num_values}", struct.pack("<H", count) + coded


def models(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield models, lists of records and plan files, by kind."""
    for subject in subjects(folder):
        data = subject.files[subject.damaged]
        suffix = Path(subject.damaged).suffix
        if subject.name.startswith("plan for"):
            yield "plan", data
        elif suffix in {".onnx", ".tflite", ".csv"} and not subject.is_slow:
            yield suffix[1:], data


def main(folder: Path) -> None:
    """Write all to a folder."""
    for kind in ("programs", "weights", "onnx", "tflite", "plan", "csv"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name:
        made = [*programs(Path(name)), *steps(Path(name))]
        for number, path in enumerate(made):
            (folder / "programs" / f"{number:03}-{path.name}").write_bytes(path.read_bytes())
    for name, data in codes():
        (folder / "weights" / name).write_bytes(data)
    with TemporaryDirectory() as name:
        for number, (kind, data) in enumerate(models(Path(name))):
            (folder / kind / f"seed-{number:03}").write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
