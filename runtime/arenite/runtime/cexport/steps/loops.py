"""Loops: functions for their condition and body, and what calls them."""

from dataclasses import replace

from arenite.planner import Port
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.layout import ArenaLayout
from arenite.runtime.cexport.base.text import comment
from arenite.runtime.cexport.steps.writer import StepWriter, writers, writes
from arenite.runtime.operators.loops import InnerProgram, While


@writes(While)
def loop(t: StepWriter) -> None:
    """Write a loop; its carried values lie in its outputs."""
    operator = t.operator
    assert isinstance(operator, While)
    condition = _Function(t, "condition", operator.condition)
    body = _Function(t, "body", operator.body)
    carried = [t.output(position) for position in range(len(t.step.outputs))]
    places = [(t.address(each), each.size) for each in carried if each.size]
    _, working = t.working_memory()
    for position, each in enumerate(carried):
        if each.size:
            source = t.address(t.input(position))
            t.plain_call(f"memcpy({t.address(each)}, {source}, {each.size});")
    verdict = condition.place(operator.condition.program.outputs[0])
    lines = [
        f"uint8_t *inner = {working};",
        *_copies(condition, operator.condition.program.inputs, places, inwards=True),
        f"{condition.name}(inner);",
        f"if (*({verdict}) == 0)",
        "    break;",
        *_copies(body, operator.body.program.inputs, places, inwards=True),
        f"{body.name}(inner);",
        *_copies(body, operator.body.program.outputs, places, inwards=False),
        f"{t.file.constants.prefix.upper()}_STEP({_outer(t)});",
    ]
    t.calls += ["for (;;) {", *(f"    {line}" for line in lines), "}"]


def _outer(t: StepWriter) -> int:
    """Return the number of the step of the model that runs this one, or is it."""
    return t.number if t.outer is None else t.outer


def _copies(
    function: "_Function", ports: tuple[Port, ...], places: list[tuple[str, int]], *, inwards: bool
) -> list[str]:
    """Return what copies the carried values into a program, or out of it."""
    inside = [function.place(port) for port in ports if function.size(port)]
    pairs = zip(inside, places, strict=True)
    if inwards:
        return [f"memcpy({inner}, {outer}, {size});" for inner, (outer, size) in pairs]
    return [f"memcpy({outer}, {inner}, {size});" for inner, (outer, size) in pairs]


class _Function:
    """A function that runs a program in memory that it is handed.

    Attributes:
        name: Its name.

    Raises:
        NotWrittenError: There is no kernel for one of its steps.
    """

    def __init__(self, t: StepWriter, role: str, inner: InnerProgram) -> None:
        program, problem, plan = inner.placed
        own = ArenaLayout.of(program, problem, plan, inner.shifted)
        layout = self._layout = replace(own, has_tables=t.layout.has_tables)
        prefix = f"{t.prefix}while_{t.number}_{role}"
        self.name = f"{t.file.constants.prefix}_{prefix}"
        lines: list[str] = []
        for number, step in enumerate(program.steps):
            writer = StepWriter(layout, step, number, t.file, prefix=f"{prefix}_", outer=_outer(t))
            write = writers().get(type(step.operator))
            try:
                if write is None:
                    raise NotWrittenError("no C kernel for this operator")
                write(writer)
            except NotWrittenError as reason:
                label = step.operator.label
                raise NotWrittenError(f"{step.name!r} ({label}) in it: {reason}") from reason
            lines.append(f"/* {step.operator.label} {comment(step.name)} */")
            lines += writer.calls
        t.file.inner.append(
            "\n".join(
                [
                    "",
                    f"static void {self.name}(uint8_t *arena)",
                    "{",
                    *(f"    {line}" for line in lines or ["(void)arena;"]),
                    "}",
                ]
            )
        )

    def place(self, port: Port) -> str:
        """Return where an input or output lies, in the memory that its caller has."""
        return f"inner + {self._layout.offset(port.tensor)}"

    def size(self, port: Port) -> int:
        """Return the bytes of an input or output."""
        return self._layout.program.tensors[port.tensor].size
