"""The memories that tensors are spread over: `--memory sram=256KiB --memory psram=8MiB,read=4`."""

import math
from collections.abc import Sequence

import click

from arenite.cli.options.types import SizeType
from arenite.planner.memory import Memory
from arenite.planner.several_memories import CostedMemory

_FORM = (
    "NAME=SIZE, such as sram=256KiB or psram=8MiB,read=4,write=6, or NAME=any for a memory "
    "without limit"
)


class MemoryType(click.ParamType[tuple[Memory, dict[str, float]]]):
    """A memory such as `psram=8MiB,read=4,write=6`, with the costs that are stated."""

    name = "memory"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Memory, dict[str, float]]:
        """Return the memory and its costs."""
        size, *costs = str(value).split(",")
        name, equals, text = size.partition("=")
        if not (name and equals):
            self.fail(f"{value!r} is not {_FORM}", param, ctx)
        capacity = None if text == "any" else SizeType().convert(text, param, ctx)
        stated: dict[str, float] = {}
        for cost in costs:
            kind, equals, number = cost.partition("=")
            if kind not in ("read", "write") or kind in stated:
                self.fail(f"{value!r} is not {_FORM}", param, ctx)
            stated[kind] = self._cost(number, param, ctx)
        return Memory(name, capacity), stated

    def _cost(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            cost = float(text)
        except ValueError:
            cost = math.nan
        if not 0 <= cost < math.inf:
            self.fail(f"a byte cannot cost {text!r}; a number from 0 expected", param, ctx)
        return cost


def _costed(
    context: click.Context,
    parameter: click.Parameter,
    stated: Sequence[tuple[Memory, dict[str, float]]],
) -> tuple[CostedMemory, ...]:
    """Return the memories; where no cost is stated, each costs more than the one before."""
    names = [memory.name for memory, _ in stated]
    if len(set(names)) < len(names):
        raise click.BadParameter("a name is given twice", context, parameter)
    return tuple(
        CostedMemory(memory, costs.get("read", position), costs.get("write", position))
        for position, (memory, costs) in enumerate(stated, 1)
    )


memories_option = click.option(
    "--memory",
    "memories",
    type=MemoryType(),
    multiple=True,
    callback=_costed,
    metavar="NAME=SIZE[,read=COST][,write=COST]",
    help="Spread the tensors over memories such as sram=256KiB and psram=8MiB,read=4,write=6, so "
    "that reading and writing costs least. A byte costs 1 in the first memory, 2 in the second "
    "and so on, unless stated. Repeatable.",
)
