"""Models exported as C, compiled for this machine, and run.

With CMSIS-NN: a double of it that is always there, and your own where it is.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from arenite.pipeline.base.memories import spread_over
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.exporting import CRequest, bands_for_c
from arenite.pipeline.session import Session
from arenite.pipeline.targets.c import lower_model_for_c
from arenite.planner.programs.memories import CostedMemory
from arenite.planner.programs.ordering import FindOrder
from arenite.planner.rewrites.derivation import derive
from arenite.runtime.cexport.base.layout import CPort, Interface
from arenite.runtime.cexport.base.options import COptions, Extension, Vectors
from arenite.runtime.cexport.export import CExport, export_c
from arenite.runtime.cexport.steps.cmsis_nn_operators import for_cmsis_nn
from arenite.strategies import BandsLimitError, find, find_order

WARNINGS = (
    "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wcast-qual", "-pedantic", "-Werror",
)  # fmt: skip
MARGIN = 64
"""Bytes before and behind an arena that a run must leave as they are."""


def exported(
    path: Path,
    *,
    order: FindOrder | None = None,
    extension: Extension | None = None,
    reading: Reading | None = None,
    memories: Sequence[CostedMemory] = (),
    **options: Any,
) -> CExport:
    """Return a model as C, by the best plan; for CMSIS-NN's kernels if there is an extension."""
    lowered = lower_model_for_c(path, reading)
    if extension is not None:
        steps = for_cmsis_nn(lowered.program, lowered.shifted, extension)
        lowered = replace(lowered, program=steps)
    compiled = lowered.compiled(derive(lowered.program, lowered.rules, order))
    if memories:
        source, outcome, _ = spread_over(compiled.source, memories, find("best"))
        return export_c(replace(compiled, source=source), outcome.plan, COptions(**options))
    return export_c(compiled, find("best")(compiled.source.problem), COptions(**options))


@dataclass
class Bands:
    """A model that may run in bands of rows."""

    path: Path
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        self._lowered = lower_model_for_c(self.path, self.reading)
        request = CRequest(self.path, self.path.parent, self.reading, find("best"), None)
        with bands_for_c(request, self._lowered) as self._banding:
            pass  # nobody watches it

    @property
    def least(self) -> int:
        """Bytes of the smallest arena there is."""
        with pytest.raises(BandsLimitError) as caught:
            self._banding.within(1)
        return caught.value.least

    def within(
        self,
        budget: int,
        vectors: Callable[[Interface], Vectors | None] = lambda _: None,
        **options: Any,
    ) -> CExport:
        """Return the model as C in an arena of at most so many bytes."""
        banded = self._banding.within(budget)
        model = self._lowered.compiled(banded.derivation)
        return export_c(model, banded.plan, COptions(**options), vectors)


def best_order() -> FindOrder:
    """Return what finds the best order."""
    return find_order("best")


def written(export: CExport, folder: Path) -> Path:
    """Write the files of an export into a folder."""
    for name, data in export.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def compiled(
    export: CExport,
    folder: Path,
    *flags: str,
    compiler: str = "gcc",
    standard: str = "-std=c99",
    objects: Sequence[Path] = (),
) -> Path:
    """Return the shared library of an export and objects, warnings being errors."""
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    written(export, folder)
    library = folder / "library.so"
    language = ["-x", "c++"] if "++" in standard else []
    command = [
        compiler, standard, *WARNINGS, "-O1", "-fPIC", "-shared", "-ffp-contract=off", *flags,
        f"-I{folder}", "-o", str(library), *language,
        "-include", str(folder / f"{export.name}_serial.h"),  # as clean as the rest
        str(folder / f"{export.name}.c"), str(folder / f"{export.name}_weights.c"),
    ]  # fmt: skip
    if objects:
        command += ["-x", "none", *map(str, objects)]
    done = subprocess.run([*command, "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return library


@dataclass
class Machine:
    """An exported model with an arena of its own.

    Attributes:
        export: The model.
        arena: Its arena, between margins.
    """

    export: CExport
    arena: np.ndarray
    _whole: np.ndarray
    _library: ctypes.CDLL

    @classmethod
    def of(cls, export: CExport, library: Path) -> "Machine":
        """Return a machine whose arena holds noise, and states what they start from."""
        whole = np.frombuffer(
            np.random.default_rng(7).bytes(export.arena_bytes + 3 * MARGIN), "u1"
        )
        whole = whole.copy()
        start = MARGIN + -(whole.ctypes.data + MARGIN) % MARGIN
        arena = whole[start : start + export.arena_bytes]
        machine = cls(export, arena, whole, ctypes.CDLL(str(library)))
        machine.reset()
        return machine

    def reset(self) -> None:
        """Set the states of all models to what they start from."""
        for model in self.export.component.models:
            function = self._library[f"{model.name}_reset"]
            function(ctypes.c_void_p(self.arena.ctypes.data))

    def run(
        self,
        inputs: Mapping[str, np.ndarray],
        sizes: Mapping[str, int] | None = None,
        model: int = 0,
    ) -> dict[str, np.ndarray]:
        """Return the outputs, of stored axes; what is round the arena must not change.

        Args:
            sizes: Values of the dimensions of an export for a range of sizes.
            model: Which model of a system runs.
        """
        interface = self.export.component.models[model]
        if sizes is not None:
            interface = interface.at(sizes)
        for port in interface.inputs:
            data = np.ascontiguousarray(inputs[port.port.name]).view(np.uint8).reshape(-1)
            assert data.size == port.tensor.size
            self.arena[port.offset : port.offset + port.tensor.size] = data
        begin = self.arena.ctypes.data - self._whole.ctypes.data
        outside = np.ones(self._whole.size, bool)
        outside[begin : begin + self.arena.size] = False
        before = self._whole[outside].copy()
        function = self._library[f"{interface.name}_run"]
        values = {name: ctypes.c_int32(each) for name, each in interface.sizes.items()}
        counts = {each.name: ctypes.c_int32() for each in interface.dimensions if each.counted_by}
        arguments = {**values, **{name: ctypes.byref(each) for name, each in counts.items()}}
        assert function(ctypes.c_void_p(self.arena.ctypes.data), *arguments.values()) == 0
        assert np.array_equal(before, self._whole[outside]), "it wrote outside the arena"
        counted = {name: each.value for name, each in counts.items()}
        interface = interface.at({**interface.sizes, **counted}) if counted else interface
        return self.outputs(interface)

    def outputs(self, interface: Interface) -> dict[str, np.ndarray]:
        """Return what lies where a model has its outputs."""
        return {port.port.name: self._read(port) for port in interface.outputs}

    def run_on(self, address: int | None, *sizes: int) -> int:
        """Return what a run on an arena anywhere returns."""
        function = self._library[f"{self.export.name}_run"]
        return int(function(ctypes.c_void_p(address), *map(ctypes.c_int32, sizes)))

    def _read(self, port: CPort) -> np.ndarray:
        data = self.arena[port.offset : port.offset + port.tensor.size]
        return data.copy().view(port.tensor.dtype.label).reshape(port.tensor.shape)


def drawn(export: CExport, seed: int, model: int = 0) -> dict[str, np.ndarray]:
    """Return random inputs of a model, over the whole range of 8 and 16 bits."""
    random = np.random.default_rng(seed)
    found = {}
    for port in export.component.models[model].inputs:
        dtype, shape = np.dtype(port.tensor.dtype.label), port.tensor.shape
        if dtype.kind == "f":
            found[port.port.name] = random.standard_normal(shape).astype(dtype)
        elif dtype.kind == "b":
            found[port.port.name] = random.integers(0, 2, shape).astype(dtype)
        elif dtype.itemsize <= 2:
            limits = np.iinfo(dtype)
            found[port.port.name] = random.integers(
                limits.min, limits.max, shape, dtype, endpoint=True
            )
        else:
            found[port.port.name] = random.integers(-30, 30, shape).astype(dtype)
    return found


class Micro:
    """TensorFlow Lite Micro's interpreter on a model."""

    def __init__(self, path: Path) -> None:
        package = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
        self._interpreter = package.Interpreter.from_file(str(path), arena_size=1 << 24)

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the first output."""
        for index, array in enumerate(arrays):
            self._interpreter.set_input(array, index)
        self._interpreter.invoke()
        return [np.array(self._interpreter.get_output(0))]


class Ours:
    """Our runtime on a model."""

    def __init__(self, path: Path) -> None:
        self._session = Session(path, strategy=find("greedy-by-size"))

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs."""
        names = (port.name for port in self._session.inputs)
        return list(self._session.run(dict(zip(names, arrays, strict=True))).values())


class Oracle(Protocol):
    """What outputs are compared with."""

    def run(self, arrays: Sequence[np.ndarray], /) -> list[np.ndarray]: ...


def assert_same_bits(machine: Machine, oracle: Oracle, runs: int) -> int:
    """Compare the output for so many random inputs; return how many different ones there are."""
    seen = set()
    for seed in range(runs):
        inputs = drawn(machine.export, seed)
        (expected,) = oracle.run(list(inputs.values()))
        (found,) = machine.run(inputs).values()
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)
        seen.add(expected.tobytes())
    return len(seen)


DOUBLE = Path(__file__).with_name("cmsis_nn_double")
MACROS = {
    Extension.NONE: (),
    Extension.DSP: ("-DARM_MATH_DSP",),
    Extension.MVE: ("-DARM_MATH_MVEI",),
}
VARIABLE = "ARENITE_CMSIS_NN"
"""Environment variable of the folder of your CMSIS-NN: its `Include`, and in `lib` its libraries
`host.a`, `cortex-m3.a` and so on, each built for that processor."""


@dataclass
class Double:
    """The double, compiled once for each extension."""

    folder: Path

    def library(self, export: CExport, folder: Path, extension: Extension) -> Path:
        """Return the shared library of an export with the double."""
        return compiled(
            export, folder, f"-I{DOUBLE}", *MACROS[extension], "-fsanitize=undefined",
            objects=[self._compiled(extension)],
        )  # fmt: skip

    def _compiled(self, extension: Extension) -> Path:
        path = self.folder / f"{extension}.o"
        if not path.exists():
            subprocess.run(
                ["gcc", "-std=c11", *WARNINGS[:2], "-Werror", "-O2", "-fPIC", *MACROS[extension],
                 "-c", DOUBLE / "functions.c", "-o", path],
                check=True,
            )  # fmt: skip
        return path


def own() -> Path:
    """Return the folder of your own CMSIS-NN, or skip."""
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} names no folder with CMSIS-NN")
    return Path(os.environ[VARIABLE])


def own_library(processor: str) -> Path:
    """Return its library for a processor, or skip."""
    path = own() / "lib" / f"{processor}.a"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    return path
