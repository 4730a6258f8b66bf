"""Run a program on its emulated board."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from boards.build import Program

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


def run(program: Program, inputs: bytes, time_limit_s: float = TIME_LIMIT_S) -> Report:
    """Run the model on all inputs, one inference after the other.

    Args:
        program: For the board; files are written beside it.
        inputs: Bytes of all inputs of every inference, one behind the other.
        time_limit_s: Seconds after which it is ended.

    Raises:
        BoardError: It did not come to its end.
    """
    folder = program.path.parent
    (folder / "inputs").write_bytes(inputs)
    for name in ("outputs", "report"):
        (folder / name).unlink(missing_ok=True)
    board = program.board
    command = [
        board.emulator, "-M", board.name, *board.options, "-display", "none", "-serial", "none",
        "-monitor", "none", "-icount", "shift=0", "-semihosting-config",
        "enable=on,target=native", "-kernel", str(program.path.resolve()),
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
