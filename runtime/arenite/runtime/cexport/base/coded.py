"""Weights in flash that a run decodes into the arena: where each lies, and the calls."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from arenite.planner import Array
from arenite.runtime.cexport.base.coding import ByteCode, joined
from arenite.runtime.cexport.base.layout import FlashConstants
from arenite.runtime.cexport.base.orders import (
    INSTRUCTION_SETS,
    Orders,
    in_each_order,
    little_endian,
)

_MARK = re.compile(r"@coded (\d+)@")
KERNEL = "decoded_weights"


@dataclass(slots=True)
class CodedWeights:
    """The weights of layers that have windows in the arena, coded by one code of bytes.

    Where an instruction set reads them in another order, it decodes other bytes by the same code,
    from the same places.

    Attributes:
        sizes: Bytes of the weights of each window, and of their codes.
        definition: Of the code's structure, once all weights are coded.
    """

    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    definition: str = ""
    _weights: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    _windows: dict[str, int] = field(default_factory=dict)
    _places: list[str] = field(default_factory=list)

    def add(self, window: str, array: Array, orders: Orders | None = None) -> None:
        """Add the weights of a layer, as its kernels read them, in each order of the same size."""
        self._weights[window] = tuple(map(little_endian, in_each_order(array, orders)))

    def started(self, window: str, place: str, size: int) -> list[str]:
        """Return the call that fills a window at a place; `filled` states what it decodes."""
        mark = f"@coded {self._windows.setdefault(window, len(self._windows))}@"
        return [f"{KERNEL}(&coded_weights, {mark}, {place}, {size});"]

    def finish(self, constants: FlashConstants) -> None:
        """Code the weights of all windows, which are known by now."""
        parts = [self._weights[window] for window in self._windows]
        # The order of portable C counts as much as all others together.
        counted = (each for one, *others in parts for each in (one * len(others), *others))
        bytes_of = np.frombuffer(b"".join(counted), np.uint8)
        code = ByteCode.of(np.bincount(bytes_of, minlength=256))
        coded = [_filled([code.coded(each) for each in part]) for part in parts]
        (data, starts), *others = (joined(each) for each in zip(*coded, strict=True))
        orders = {
            each: np.frombuffer(other, np.uint8)
            for each, (other, _) in zip(INSTRUCTION_SETS, others, strict=True)
        }
        name = constants.add(np.frombuffer(data, np.uint8), "coded", orders)
        self._places = [f"{name} + {start}" for start in starts]
        self.sizes = {
            window: (len(part[0]), len(short[0]))
            for window, part, short in zip(self._windows, parts, coded, strict=True)
        }
        lasts, bases = code.tables()
        fields = [
            constants.add(array, hint)
            for array, hint in ((lasts, "lasts"), (bases, "bases"), (code.symbols, "symbols"))
        ]
        self.definition = (
            f"static const byte_code coded_weights = {{{', '.join(fields)}, {code.shortest}}};"
        )

    def filled(self, call: str) -> str:
        """Return a call with the place of its codes."""
        return _MARK.sub(lambda mark: self._places[int(mark[1])], call)


def _filled(codes: Sequence[bytes]) -> list[bytes]:
    """Return codes with zeros behind the shorter ones."""
    size = max(map(len, codes))
    return [each.ljust(size, b"\0") for each in codes]
