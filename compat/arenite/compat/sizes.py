"""Programs of a model whose inputs vary in size from run to run.

The first run builds a program for its sizes. Once a length varies, a program is built for a range
that reaches from the smallest step to several times the largest length, and again when a run is
beyond it: a number of times that grows with the logarithm of the largest size. A model that cannot
be built for a range has a program for each size, of which a few are open.
"""

import logging
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from arenite.compat.cache import Model, UnavailableError, note, noted, open_program
from arenite.pipeline import Session
from arenite.planner import AreniteError
from arenite.planner.sizes import Dimension

_log = logging.getLogger(__name__)
_MOST_OPEN = 4
_LARGEST_STEP = 32
_NOTE = "sizes"

Array = NDArray[Any]
Lengths = dict[str, int]


@dataclass(slots=True)
class Programs:
    """The programs of a model, of which those that fit the last runs are open.

    Attributes:
        model: The model.
        parts: Other files that it consists of.
        threads: Number of threads that run kernels.
        values: Names of inputs whose numbers a program may have to know when it is built.
        unranked: Inputs that state no shape; their lengths go by `input:axis`.
    """

    model: Model
    parts: Sequence[Path] = ()
    threads: int = 1
    values: Sequence[str] = ()
    unranked: frozenset[str] = frozenset()
    _open: dict[str, Session] = field(default_factory=dict)
    _last: tuple[Lengths, dict[str, Any], Session] | None = None
    _missed: dict[str, list[Lengths]] = field(default_factory=dict)
    _range: dict[str, Any] | None = None
    _bounds: dict[str, int | Dimension] = field(default_factory=dict)
    _takes_ranges: bool = True
    _fixes_values: bool | None = None
    _fixed_values: set[tuple[Any, ...]] = field(default_factory=set)
    _process: int = field(default_factory=os.getpid)

    def __post_init__(self) -> None:
        kept = noted(self.model, _NOTE)
        if isinstance(kept, dict):
            self._take_range(kept["range"])
            self._takes_ranges = kept["takes_ranges"]
            self._fixes_values = kept["fixes_values"]

    def _take_range(self, options: dict[str, Any] | None) -> None:
        self._range, self._bounds = options, _lengths_of(options) if options else {}

    def _note(self) -> None:
        """Remember for the next process what was found."""
        found = {
            "range": self._range,
            "takes_ranges": self._takes_ranges,
            "fixes_values": self._fixes_values,
        }
        note(self.model, _NOTE, found)

    def run(self, lengths: Lengths, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model at the sizes of its inputs; programs are built and opened as needed.

        Args:
            lengths: Lengths of the free axes of the inputs, by name.
            inputs: Arrays of the right types, by the name of the input.

        Raises:
            RefusedError: There is no program for these sizes.
            UnavailableError: A package that it needs is missing.
        """
        if self._process != os.getpid():  # a child, where threads of sessions are not
            self._open.clear()
            self._last, self._process = None, os.getpid()
        values = {name: inputs[name].item() for name in self.values}
        if self._last is not None and self._last[:2] == (lengths, values):
            return _run_session(self._last[2], inputs)
        made = self._run_as(lengths, values, inputs)
        self._last = lengths, values, next(reversed(self._open.values()))
        return made

    def _run_as(
        self, lengths: Lengths, values: dict[str, Any], inputs: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Run a program that knows the values or does not, as was found."""
        if values and self._fixes_values is None:
            return self._first_run(lengths, values, inputs)
        if self._fixes_values:
            self._fixed_values.add(tuple(values.values()))
            if len(self._fixed_values) > _MOST_OPEN:  # they are no settings, but count
                with suppress(AreniteError):
                    return self._run(lengths, {}, inputs)
        return self._run(lengths, values if self._fixes_values else {}, inputs)

    def _first_run(
        self, lengths: Lengths, values: dict[str, Any], inputs: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Run a model with scalar inputs, and find whether programs have to know their numbers.

        A condition or a shape may depend on them, which ONNX Runtime runs or nothing does.
        """
        refusal: AreniteError | None = None
        made: dict[str, Array] = {}
        try:
            made = self._run(lengths, {}, inputs)
        except AreniteError as error:
            refusal = error
        if refusal or any("onnxruntime" in each.backends() for each in self._open.values()):
            without, self._open = self._open, {}
            try:
                made = self._run(lengths, values, inputs)
                self._fixes_values = True
            except AreniteError as error:
                if refusal:
                    raise refusal from error
                self._open = without
        self._fixes_values = self._fixes_values or False
        self._note()
        return made

    def open_fixed(self, lengths: Lengths) -> None:
        """Build and open the program for some sizes.

        Raises:
            RefusedError: There is none.
            UnavailableError: A package that it needs is missing.
        """
        self._opened(self._options(lengths, {}))

    def _run(
        self, lengths: Lengths, values: dict[str, Any], inputs: Mapping[str, Array]
    ) -> dict[str, Array]:
        fixed = self._options(lengths, values)
        missed = self._missed.get(str(values), [])
        if str(fixed) not in self._open and lengths not in missed:
            missed = [*missed, lengths]
        reasons: set[str] = set()
        for ranged in self._ranged(lengths, values, missed):
            try:
                made = self._run_program(ranged, inputs)
            except UnavailableError:
                raise
            except AreniteError as error:  # another range, or none, may do
                _log.info("%s: %s: %s", self.model.name, ranged, error)
                self._open.pop(str(ranged), None)
                reason = re.sub(r"\d+", "", str(error))
                if reason in reasons:  # which other limits do not help
                    break
                reasons.add(reason)
                continue
            if ranged != self._range:
                self._take_range(ranged)
                self._missed[str(values)] = missed
                self._open = {str(ranged): self._open[str(ranged)]}
                self._note()
            return made
        made = self._run_program(fixed, inputs)
        self._missed[str(values)] = missed
        if self._takes_ranges and len(missed) > 1:
            self._takes_ranges = False
            self._note()
        return made

    def _options(
        self, lengths: Mapping[str, int | str], values: Mapping[str, float]
    ) -> dict[str, Any]:
        """Return arguments of `arenite.build`; a length is a number or the text of a range."""
        dims: dict[str, int | str] = {}
        shapes: dict[str, list[int | str]] = {}
        for name, length in lengths.items():
            owner = name.rpartition(":")[0]
            if owner in self.unranked:
                shapes.setdefault(owner, []).append(length)
            else:
                dims[name] = length
        return {"dims": dims, "shapes": shapes, "values": dict(values)}

    def _ranged(
        self, lengths: Lengths, values: dict[str, Any], missed: list[Lengths]
    ) -> Iterator[dict[str, Any]]:
        """Yield options of programs for ranges that hold these sizes, the best one first."""
        known = self._range
        if not self._takes_ranges:
            return
        is_alike = self._bounds.keys() == lengths.keys()
        if known is not None and known["values"] == values and is_alike:
            if all(_is_within(lengths[name], each) for name, each in self._bounds.items()):
                yield known
            else:
                missed = [*missed, *_corners(self._bounds)]
        varied = [name for name in lengths if any(each[name] != lengths[name] for each in missed)]
        if varied:
            for dims in ranges_of(missed, varied):
                yield self._options({**lengths, **dims}, values)

    def _run_program(
        self, options: dict[str, Any], inputs: Mapping[str, Array]
    ) -> dict[str, Array]:
        return _run_session(self._opened(options), inputs)

    def _opened(self, options: dict[str, Any]) -> Session:
        key = str(options)
        if key in self._open:
            self._open[key] = self._open.pop(key)  # the last used is the last
            return self._open[key]
        while len(self._open) >= _MOST_OPEN:
            del self._open[next(iter(self._open))]
        found = open_program(self.model, options, threads=self.threads, parts=self.parts)
        self._open[key] = found
        return found


def _run_session(session: Session, inputs: Mapping[str, Array]) -> dict[str, Array]:
    return session.run({port.name: inputs[port.name] for port in session.inputs})


def _lengths_of(options: Mapping[str, Any]) -> dict[str, int | Dimension]:
    """Return the lengths and ranges of a program."""
    shapes = options["shapes"].items()
    texts = {f"{name}:{axis}": text for name, shape in shapes for axis, text in enumerate(shape)}
    texts |= options["dims"]
    return {name: Dimension.parse(name, str(text)) for name, text in texts.items()}


def _is_within(length: int, stated: int | Dimension) -> bool:
    return length in stated if isinstance(stated, Dimension) else length == stated


def _corners(bounds: Mapping[str, int | Dimension]) -> tuple[Lengths, Lengths]:
    """Return the lowest and the highest lengths of a program."""
    stated = bounds.items()
    return (
        {name: each.low if isinstance(each, Dimension) else each for name, each in stated},
        {name: each.high if isinstance(each, Dimension) else each for name, each in stated},
    )


def ranges_of(seen: Sequence[Lengths], varied: Sequence[str]) -> Iterator[dict[str, int | str]]:
    """Yield ranges of the lengths that vary, wide ones first.

    A program for a wide range serves more sizes, but may not be possible: lengths may have to be
    multiples of a number, or large enough for a window. One length reaches four times the next
    power of two, each of two twice; those that were always equal count as one. Memory follows
    the sizes of a run, not those of the range.
    """
    spare = 2 // len({tuple(each[name] for each in seen) for name in varied})
    found: list[dict[str, int | str]] = []
    for is_low, is_high in ((True, True), (False, True), (False, False)):
        dims: dict[str, int | str] = {}
        for name in varied:
            lengths = [each[name] for each in seen]
            step = math.gcd(*lengths, _LARGEST_STEP)
            low, high = min(lengths), max(lengths)
            if is_high:
                high = 1 << (high - 1).bit_length() + spare
            if is_low:
                low = min(low, step)
            elif low:
                low = 1 << low.bit_length() - 1 if is_high else low
            dims[name] = f"{low}..{high}:{step}"
        if dims not in found:
            found.append(dims)
    yield from found
