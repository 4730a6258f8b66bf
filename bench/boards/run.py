"""Run a program on its emulated board, and a model in the interpreters beside it."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import tflite
from numpy.typing import NDArray

from bench.boards.program import Program

TIME_LIMIT_S: Final = 300
CALIBRATION: Final = 2_000_000
"""Instructions that the board counts before it runs the model."""
_ENDINGS: Final = {
    2: "a file of the host cannot be opened or written",
    3: "the inputs end within a run",
    4: "the model says that it failed",
    5: "the counter stands still",
    90: "the processor took a fault",
}


class BoardError(Exception):
    """The program did not come to its end, or reports a fault."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a board measured.

    Attributes:
        runs: Number of inferences.
        outputs: All outputs of all of them, one behind the other.
        stack: Bytes of stack that the model took at most, what its callers took apart.
        stack_room: Bytes there were.
        stack_overflowed: Whether it went to the end of them.
        canaries_harmed: Bytes round the arena that changed.
        instructions: Number of them in one inference.
        calibration: Number of them counted for `CALIBRATION` and the handful round them.
    """

    runs: int
    outputs: bytes
    stack: int
    stack_room: int
    stack_overflowed: bool
    canaries_harmed: int
    instructions: int
    calibration: int

    def require_sound(self) -> None:
        """Check that the model kept to its arena and the stack.

        Raises:
            BoardError: It did not.
        """
        if self.stack_overflowed:
            raise BoardError(f"the stack overflowed: it has {self.stack_room} B")
        if self.canaries_harmed:
            raise BoardError(f"{self.canaries_harmed} B round the arena were overwritten")


def run(
    program: Program,
    inputs: bytes,
    time_limit_s: float = TIME_LIMIT_S,
    options: Sequence[str] = (),
) -> Report:
    """Run the model on all inputs, one inference after the other.

    Args:
        program: For the board; files are written beside it.
        inputs: Bytes of all inputs of every inference, one behind the other.
        time_limit_s: Seconds after which it is ended.
        options: Further options of the emulator.

    Raises:
        BoardError: It did not come to its end.
    """
    folder = program.path.parent
    (folder / "inputs").write_bytes(inputs)
    for name in ("outputs", "report"):
        (folder / name).unlink(missing_ok=True)
    board = program.board
    command = [
        board.emulator, "-M", board.emulated, *board.options, "-display", "none",
        "-serial", "none", "-monitor", "none", "-icount", "shift=0", "-semihosting-config",
        "enable=on,target=native", *options, "-kernel", str(program.path.resolve()),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False,
            timeout=time_limit_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BoardError(f"{board.name}: not done after {time_limit_s} s") from error
    if done.returncode != 0:
        reason = _ENDINGS.get(done.returncode, f"code {done.returncode}: {done.stderr[-500:]}")
        raise BoardError(f"{board.name}: {reason}")
    return _read(program, folder)


def _read(program: Program, folder: Path) -> Report:
    lines = (folder / "report").read_text(encoding="ascii").splitlines()
    told = {key: int(value, 16) for key, value in (line.split() for line in lines)}

    def instructions(ticks: int) -> int:
        return round(ticks * 1_000_000_000 / program.board.clock_hz)

    return Report(
        runs=told["runs"],
        outputs=(folder / "outputs").read_bytes(),
        stack=told["stack"],
        stack_room=told["stack_room"],
        stack_overflowed=bool(told["stack_overflowed"]),
        canaries_harmed=told["canaries_harmed"],
        instructions=instructions(told["ticks"]),
        calibration=instructions(told["calibration_ticks"]),
    )


Array = NDArray[Any]
ARENA: Final = 64 << 20
_DTYPES: Final = {
    getattr(tflite.TensorType, name.upper()): name
    for name in ("float32", "int32", "uint8", "int64", "bool", "int16", "int8")
}


def random_inputs(path: Path, num_runs: int, seed: int = 0) -> list[list[Array]]:
    """Return the inputs of each run: noise, the first over the whole range of an integer type.

    The others take a part of the range each, as pictures differ in light: outputs of networks
    that average would all be alike.
    """
    random = np.random.default_rng(seed)
    graph = tflite.Model.GetRootAs(path.read_bytes(), 0).Subgraphs(0)
    tensors = [graph.Tensors(graph.Inputs(n)) for n in range(graph.InputsLength())]
    ports = [(each.ShapeAsNumpy(), np.dtype(_DTYPES[each.Type()])) for each in tensors]
    return [[_drawn(random, *port, whole=n == 0) for port in ports] for n in range(num_runs)]


def _drawn(random: np.random.Generator, shape: Any, dtype: np.dtype[Any], *, whole: bool) -> Array:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        if not whole:
            low, high = sorted(random.integers(low, high, 2, endpoint=True).tolist())
        return np.asarray(random.integers(low, high, shape, dtype, endpoint=True))
    shift = 0.0 if whole else random.normal()
    return np.asarray(shift + random.standard_normal(shape), dtype)


def joined(runs: Sequence[Sequence[Array]]) -> bytes:
    """Return the arrays of all runs, one behind the other, as a board reads and writes them."""
    return b"".join(np.ascontiguousarray(array).tobytes() for run in runs for array in run)


def tflm_outputs(path: Path, runs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Return what TensorFlow Lite Micro's interpreter makes of the runs, states kept between."""
    from tflite_micro.python.tflite_micro.runtime import Interpreter

    interpreter = Interpreter.from_bytes(path.read_bytes(), arena_size=ARENA)
    count = tflite.Model.GetRootAs(path.read_bytes(), 0).Subgraphs(0).OutputsLength()
    found = []
    for arrays in runs:
        for index, array in enumerate(arrays):
            interpreter.set_input(array, index)
        interpreter.invoke()
        found.append([np.array(interpreter.get_output(index)) for index in range(count)])
    return found


def litert_outputs(path: Path, runs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Return what LiteRT's reference kernels make of the runs, states kept between."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    found = []
    for arrays in runs:
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        found.append([interpreter.get_tensor(each["index"]) for each in outputs])
    return found
