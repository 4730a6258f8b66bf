"""What a session says of its steps, its memories and its processor."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepProfile:
    """What one step of the last run took.

    Attributes:
        name: Name of the step.
        operator: Name of its operator.
        backend: Whose kernel ran: `xnnpack`, `arenite`, or `onnxruntime`.
        nanoseconds: Time in the last run.
        bytes: Bytes that it reads and writes, weights included.
    """

    name: str
    operator: str
    backend: str
    nanoseconds: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory that a session uses.

    Attributes:
        name: Name of the memory.
        size: Size in bytes: the height of the plan in it.
        alignment: Alignment of its address in bytes, at least 64.
        writable: Whether steps may write to it; if not, the caller fills it.
        spilled: Whether tensors are only carried there and back: a temporary file, in the folder
            that `TMPDIR` names, or a buffer of the caller.
    """

    name: str
    size: int
    alignment: int
    writable: bool
    spilled: bool = False


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """Bytes that a session holds while it is open.

    Not counted: threads and their stacks, the Python interpreter, and what ONNX Runtime holds for
    the steps that it runs.

    Attributes:
        memories: Memories of the plan, with the 128 B behind each that kernels may read; not
            the file that tensors are spilled to.
        program: The program, copied from the file.
        weights: All weights, mapped from the file.
        weights_resident: The weights that runs read from the file and that stay resident.
        decoded: Decoded constants, and the decoder.
        kernels: Packed weights and tables, including XNNPACK's, and the steps themselves.
        other: Descriptions of tensors, inputs and outputs.
    """

    memories: int
    program: int
    weights: int
    weights_resident: int
    decoded: int
    kernels: int
    other: int

    @property
    def total(self) -> int:
        """Bytes that are resident: everything except weights that runs do not read."""
        return (
            self.memories
            + self.program
            + self.weights_resident
            + self.decoded
            + self.kernels
            + self.other
        )


@dataclass(frozen=True, slots=True)
class Tuned:
    """The processor that a program was tuned on.

    Attributes:
        processor: Its name.
        is_here: Whether it is this one: then kernels are those that were the quickest there.
            Otherwise a table chose them when the program was built.
    """

    processor: str
    is_here: bool
