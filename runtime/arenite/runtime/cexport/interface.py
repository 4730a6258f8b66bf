"""What callers of an exported model see of it."""

from dataclasses import dataclass

from arenite.planner.program import Port, Program
from arenite.planner.tensors import Tensor, TensorKind
from arenite.runtime.cexport.layout import Layout
from arenite.runtime.cexport.literals import TYPES
from arenite.runtime.cexport.naming import distinct


@dataclass(frozen=True, slots=True)
class CPort:
    """An input or an output.

    Attributes:
        port: The model's.
        tensor: The tensor that holds it.
        name: In C.
        offset: First byte in the arena.
    """

    port: Port
    tensor: Tensor
    name: str
    offset: int

    @property
    def c_type(self) -> str:
        """Type of its elements in C."""
        return TYPES[self.tensor.dtype.label]


@dataclass(frozen=True, slots=True)
class Interface:
    """What callers see.

    Attributes:
        name: Prefix of functions; that of macros is the same in capital letters.
        inputs: What the caller writes before each run.
        outputs: What the caller reads after it.
        arena_bytes: Bytes of the arena.
        alignment: Of the arena, in bytes.
        has_states: Whether something is kept from one run to the next.
        num_steps: Number of steps.
    """

    name: str
    inputs: tuple[CPort, ...]
    outputs: tuple[CPort, ...]
    arena_bytes: int
    alignment: int
    has_states: bool
    num_steps: int

    @classmethod
    def of(cls, name: str, layout: Layout, alignment: int) -> "Interface":
        """Return the interface of a program."""
        program = layout.program
        states = any(each.kind is TensorKind.STATE for each in program.tensors.values())
        return cls(
            name,
            _ports(program, layout, program.inputs, "input"),
            _ports(program, layout, program.outputs, "output"),
            layout.height,
            alignment,
            states,
            len(program.steps),
        )

    @property
    def macro(self) -> str:
        """Prefix of macros."""
        return self.name.upper()


def _ports(
    program: Program, layout: Layout, ports: tuple[Port, ...], otherwise: str
) -> tuple[CPort, ...]:
    names = distinct((port.name for port in ports), otherwise)
    return tuple(
        CPort(port, program.tensors[port.tensor], name, layout.offset(port.tensor))
        for port, name in zip(ports, names, strict=True)
    )
