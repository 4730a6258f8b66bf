"""One step, while it is written as calls of kernels; and the table of writers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from arenite.planner import Array, Step, Tensor
from arenite.planner.operators import Operator
from arenite.planner.sizes import Size, bounds, depends
from arenite.runtime.cexport import kernels
from arenite.runtime.cexport.base.coded import CodedWeights
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.external import ExternalWeights
from arenite.runtime.cexport.base.fixed_point import clamp_of
from arenite.runtime.cexport.base.layout import ArenaLayout, FlashConstants
from arenite.runtime.cexport.base.options import Rounding
from arenite.runtime.cexport.base.orders import Orders
from arenite.runtime.cexport.base.ranges import has_symbols, without_symbols
from arenite.runtime.cexport.base.text import number
from arenite.runtime.cexport.kernels.costs import Work

_ROWS = {
    "IN_ROWS": "in_rows", "OUT_ROWS": "out_rows", "in_rows_at": "in_rows",
    "out_rows_at": "out_rows", "sized_in_rows": "in_rows", "sized_out_rows": "out_rows",
}  # fmt: skip
_MOST_CALLS = 64
"""Planes of a batch that are written as calls, one after the other."""

Plane: TypeAlias = int | str
"""Index of a plane of a batch: a number, or the variable of a loop."""


@dataclass(slots=True)
class CFileParts:
    """What all steps need of the file that they are written into.

    Attributes:
        constants: Arrays that lie in flash.
        kernels: Names of the kernels that are called.
        features: Macros that must be 1.
        layers: Definitions of the structures of layers.
        functions: Definitions of functions that kernels are handed.
        inner: Definitions of functions that run the programs of loops.
        is_quick: Whether quick kernels run the layers that they can.
        is_coded: Whether weights that have windows are decoded, not fetched.
        external: Weights that a run fetches.
        coded: Weights that a run decodes.
        work: What the steps compute.
        rounding: How products of integers are rounded.
        is_narrow: Whether weights that 16 bits hold exactly take 16 bits.
        is_compared: Whether the text is only compared with that of other sizes: all structures of
            layers are then defined round their calls.
    """

    constants: FlashConstants
    rounding: Rounding = "double"
    is_narrow: bool = False
    is_compared: bool = False
    kernels: set[str] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    layers: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    is_quick: bool = True
    is_coded: bool = False
    external: ExternalWeights = field(init=False)
    coded: CodedWeights = field(default_factory=CodedWeights)
    work: list[Work] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.external = ExternalWeights(self.constants.prefix)

    @property
    def in_windows(self) -> ExternalWeights | CodedWeights:
        """Where the weights of layers with windows come from."""
        return self.coded if self.is_coded else self.external

    @classmethod
    def empty(cls, prefix: str, rounding: Rounding = "double") -> "CFileParts":
        """Return a file without any steps, whose names begin with a prefix."""
        return cls(FlashConstants(prefix), rounding)


@dataclass(slots=True)
class StepWriter:
    """One step of a program.

    Attributes:
        layout: Where tensors lie.
        number: Its place in the order.
        file: What it is written into.
        calls: The calls so far.
        num_rows: Rows that its turns count, if it makes some at a time; 0 if it makes all at once.
        sums: Where it sums up rows of its operand from turn to turn; "" if it does not.
        prefix: Of the names of its layers, in a program that a step runs.
        outer: Number of that step in the program of the model; None if it is in that itself.
    """

    layout: ArenaLayout
    step: Step
    number: int
    file: CFileParts
    calls: list[str] = field(default_factory=list)
    num_rows: int = 0
    sums: str = ""
    prefix: str = ""
    outer: int | None = None
    _layers: dict[str, str] = field(default_factory=dict)
    _locals: dict[str, str] = field(default_factory=dict)

    @property
    def is_ranged(self) -> bool:
        """Whether the program is for a range of sizes."""
        return bool(self.layout.program.dimensions)

    @property
    def is_even(self) -> bool:
        """Whether products of integers are rounded by scales of floats, halves to even."""
        return self.file.rounding == "even"

    @property
    def is_shifted(self) -> bool:
        """Whether the step computes in bytes without a sign in the model, stored less 128."""
        return self.input().name in self.layout.shifted

    def clamp(self, low: float, high: float) -> tuple[int, int]:
        """Return the integers that the first output is clamped to."""
        return clamp_of(low, high, self.output(), self.file.rounding)

    @property
    def operator(self) -> Operator:
        return self.step.operator

    def has(self, position: int) -> bool:
        """Tell whether an optional input is given."""
        return position < len(self.step.inputs) and bool(self.step.inputs[position])

    def input(self, position: int = 0) -> Tensor:
        if not self.has(position):
            raise NotWrittenError(f"input {position} is missing")
        return self.layout.program.tensors[self.step.inputs[position]]

    def output(self, position: int = 0) -> Tensor:
        return self.layout.program.tensors[self.step.outputs[position]]

    def array(self, position: int) -> Array:
        """Return the elements of an input that must be constant.

        Raises:
            NotWrittenError: It is not, or is left out.
        """
        tensor = self.input(position)
        name = self.layout.windows.get(tensor.name, tensor.name)
        root, inside = self.layout.program.root(name)
        found = self.layout.program.constants.get(root)
        if found is None:
            raise NotWrittenError(f"input {tensor.name!r} is not constant")
        data = np.ascontiguousarray(found).view(np.uint8).reshape(-1)[inside:][: tensor.size]
        return data.view(found.dtype).reshape(tensor.shape)

    def types(self, *allowed: str) -> str:
        """Return the element type of the first input, which the first output must share.

        Raises:
            NotWrittenError: They differ, or no kernel takes the type.
        """
        one, other = self.input().dtype.label, self.output().dtype.label
        if one != other:
            raise NotWrittenError(f"input of {one} and output of {other} are unsupported")
        if one not in allowed:
            raise NotWrittenError(
                f"element type {one} is unsupported, supported: {', '.join(allowed)}"
            )
        return one

    # Text.

    def address(self, tensor: Tensor, plane: Plane = 0, bytes_each: int = 0) -> str:
        """Return where a tensor lies: in the arena, or among the constants.

        Args:
            plane: Index of a plane of it.
            bytes_each: Bytes of a plane.
        """
        if isinstance(plane, str):
            return f"{self.address(tensor)} + {plane} * {bytes_each}"
        shift = plane * bytes_each
        if tensor.name in self.layout.rows:
            raise NotWrittenError(f"bands of rows are unsupported for {tensor.name!r}")
        if not self.layout.is_constant(tensor.name):
            return self.layout.at(self.layout.offset(tensor.name) + shift)
        root, inside = self.layout.program.root(tensor.name)
        array = self.layout.program.constants[root]
        if not array.size:
            raise NotWrittenError(f"input {tensor.name!r} is empty")
        name = self.constant(array, "constant")
        skipped = inside + shift
        has_any = skipped or depends(skipped)  # it may be 0 at the highest sizes alone
        return f"(const uint8_t *){name}" + (f" + {skipped}" if has_any else "")

    def rows_of(
        self, tensor: Tensor, stride: int, plane: Plane = 0, bytes_each: int = 0, count: int = 0,
        shift: str = "",
    ) -> str:  # fmt: skip
        """Return the rows of an operand; `stride` in bytes, 0 for one row `count` times.

        Args:
            shift: What a loop adds to its address.
        """
        if self.layout.has_tables:
            table = self._row_table(tensor, stride, plane, bytes_each, count, shift)
            return f"{'sized_in_rows' if self.is_ranged else 'in_rows_at'}({table})"
        return f"IN_ROWS({self.address(tensor, plane, bytes_each)}{shift}, {stride})"

    def rows_to(
        self, tensor: Tensor, stride: int, plane: Plane = 0, bytes_each: int = 0, shift: str = ""
    ) -> str:
        """Return the rows of a result; `stride` in bytes."""
        if self.layout.has_tables:
            table = self._row_table(tensor, stride, plane, bytes_each, shift=shift)
            return f"{'sized_out_rows' if self.is_ranged else 'out_rows_at'}({table})"
        return f"OUT_ROWS({self.address(tensor, plane, bytes_each)}{shift}, {stride})"

    def _row_table(
        self, tensor: Tensor, stride: int, plane: Plane, bytes_each: int, count: int = 0,
        shift: str = "",
    ) -> str:  # fmt: skip
        """Return the place and the offsets of rows, in a program some rows of which lie apart.

        For a range of sizes, rows side by side have no offsets but the bytes of a row.

        Raises:
            NotWrittenError: The kernel counts other rows than those of the tensor.
        """
        self.need("SIZED_ROWS" if self.is_ranged else "ROW_TABLES")
        starts = self.layout.rows.get(tensor.name)
        if starts is None and self.is_ranged:
            return f"{self.address(tensor, plane, bytes_each)}{shift}, NULL, {stride}"
        if starts is None:
            base = self.address(tensor, plane, bytes_each) + shift
            count = (bytes_each or tensor.size) // stride if stride else count
            starts = tuple(row * stride for row in range(count))
        elif stride * len(starts) != tensor.size or shift:
            raise NotWrittenError(f"bands of rows are unsupported for {tensor.name!r}")
        else:
            base = self.layout.at(starts[0])
            starts = tuple(start - starts[0] for start in starts)
        table = f"{base}, {self.constant(np.asarray(starts, np.int32), 'rows')}"
        return f"{table}, 0" if self.is_ranged else table

    def constant(self, array: Array, hint: str, orders: Orders | None = None) -> str:
        """Return the name of an array in flash.

        Args:
            orders: What it is instead for some instruction sets, of the same type and size.
        """
        if not array.size:
            raise NotWrittenError("an empty constant is unsupported")
        return self.file.constants.add(array, hint, orders)

    def filter(self, array: Array, orders: Orders | None = None) -> str:
        """Return where the weights of a layer lie, its second input: in flash, or in a window.

        Args:
            array: The weights.
            orders: As for `constant`.

        Raises:
            NotWrittenError: The window is for other weights.
        """
        window = self.input(1)
        if window.name not in self.layout.windows:
            return self.constant(array, "weights", orders)
        if array.nbytes != window.size:
            raise NotWrittenError(f"a window of {window.size} B for {array.nbytes} B of weights")
        self.file.in_windows.add(window.name, array, orders)
        return self.address(window)

    def weights(self, *arrays: Array) -> tuple[str, tuple[Array, ...]]:
        """Return the type of float weights as kernels name it, and the weights in that type.

        It is of 16 bits where those hold all of them exactly, and most weights of the file.
        """
        if self.file.is_narrow:
            for suffix, narrowed in _NARROWINGS:
                found = tuple(map(narrowed, arrays))
                if all(each is not None for each in found):
                    return suffix, tuple(each for each in found if each is not None)
        return "f32", arrays

    def layer(self, structure: str, **values: float | str) -> str:
        """Return the address of a structure with these fields.

        It lies in flash, or on the stack round its call if a field depends on the size of a run or
        on where the arena is.
        """
        order = kernels.fields(structure)
        assert set(order) == set(values), sorted(set(order) ^ set(values))
        for name, kind in order.items():
            value = values[name]
            if kind == "int16_t" and not self._has_16_bits(value):
                raise NotWrittenError(f"{name}={value!r} is unsupported, supported: 16 bits")
            if self.is_ranged and kind == "int16_t":
                values[name] = f"({kind}){value}"
        stated = [
            (name, value if isinstance(value, str) else number(value))
            for name, value in ((each, values[each]) for each in order)
        ]
        text = _initialiser(stated)
        # Each layer has a name of its own where those of several sizes are compared.
        key = f"{len(self._layers)} {text}" if self.file.is_compared else text
        if key not in self._layers:
            suffix = f"_{len(self._layers) + 1}" if self._layers else ""
            name = f"{self.prefix}step_{self.number}{suffix}"
            self._layers[key] = name
            definition = f"const {structure} {name} = {text};"
            is_placed = any(each.startswith("arena") for _, each in stated)
            if is_placed or has_symbols(text) or self.file.is_compared:
                self._locals[f"&{name}"] = definition
            else:
                self.file.layers.append(f"static {definition}")
        return f"&{self._layers[key]}"

    def local(self, name: str, definition: str) -> str:
        """Return the name of a variable on the stack, defined round the call that takes it."""
        self._locals[name] = definition
        return name

    def _has_16_bits(self, value: float | str) -> bool:
        least = most = float(value)
        if isinstance(value, Size):
            least, most = bounds(value, self.layout.program.dimensions)
        return least >= -(2**15) and most < 2**15

    def need(self, *features: str) -> None:
        """State macros that the kernels must be compiled with."""
        self.file.features.update(features)

    def call(self, kernel: str, *arguments: str | int) -> None:
        """Add a call of a kernel.

        Rows are named in a block round it: compilers give those of different blocks the same
        place on the stack, and those of a whole function a place each.
        """
        self.file.kernels.add(kernel)
        if self.num_rows:
            if arguments[-2:] != (0, self.num_rows):
                raise NotWrittenError("bands of rows are unsupported for this operator")
            end = f"end < {self.num_rows} ? end : {self.num_rows}" if self.is_ranged else "end"
            arguments = (*arguments[:-2], "first", end)
        num_rows = 0
        named: list[str] = []
        given: list[str] = []
        for argument in map(str, arguments):
            if argument in self._locals:
                lines = self._locals[argument].splitlines()
                named += [f"    {line}" for line in lines]
            kind = _ROWS.get(argument.partition("(")[0])
            if kind is not None:
                variable = f"{kind}_{num_rows}"
                num_rows += 1
                named.append(f"    const {kind} {variable} = {argument};")
                argument = variable
            given.append(argument)
        self.calls += ["{", *named, f"    {kernel}({', '.join(given)});", "}"]

    def loops(
        self, axes: Sequence[tuple[int, tuple[int, ...]]], sizes: Sequence[int]
    ) -> list[str]:
        """Begin loops round the next call; return what they add to the address of each tensor.

        Args:
            axes: Length of each, and for each tensor the elements from one index to the next.
            sizes: Bytes of an element of each tensor.

        Raises:
            NotWrittenError: The step makes some rows at a time.
        """
        if axes and self.num_rows:
            raise NotWrittenError("bands of rows are unsupported for operands that repeat so")
        names = [f"axis_{number}" for number in range(len(axes))]
        self.calls += [
            f"for (int32_t {name} = 0; {name} < {length}; ++{name})"
            for name, (length, _) in zip(names, axes, strict=True)
        ]
        return [
            "".join(
                f" + {name} * {steps[position] * size}"
                for name, (_, steps) in zip(names, axes, strict=True)
                if steps[position]
            )
            for position, size in enumerate(sizes)
        ]

    def working_memory(self) -> tuple[int, str]:
        """Return the bytes of working memory, and where it lies."""
        step = self.layout.program.steps[self.number]
        size = step.operator.scratch(self.layout.program.operands(step))
        return size, self.layout.at(self.layout.working[self.number]) if size else "NULL"

    def count(self) -> str:
        """Return the place of what the step counts.

        Raises:
            NotWrittenError: No size depends on it.
        """
        if self.step.name not in self.layout.counts:
            raise NotWrittenError("a count that no size depends on is unsupported")
        return f"&{self.layout.counts[self.step.name][1]}"

    def checked_call(self, kernel: str, *arguments: str) -> None:
        """Add a call of a kernel that calls CMSIS-NN, and may be refused by it."""
        self.file.kernels.add(kernel)
        named = [self._locals[each] for each in arguments if each in self._locals]
        lines = [
            *(line for each in named for line in each.splitlines()),
            f"if ({kernel}({', '.join(arguments)}) != ARM_CMSIS_NN_SUCCESS)",
            "    return 2;",
        ]
        self.calls += ["{", *(f"    {line}" for line in lines), "}"] if named else lines

    def plain_call(self, call: str) -> None:
        """Add a call of a function of C's own library."""
        if self.num_rows:
            raise NotWrittenError("bands of rows are unsupported for this operator")
        self.calls.append(call)

    def num_bytes(self, count: int) -> str:
        """Return a number of bytes as functions of C's own library take it."""
        return f"(size_t){count}" if self.is_ranged else str(count)

    def define(self, text: str) -> None:
        """Add the definition of a function, once."""
        if text not in self.file.functions:
            self.file.functions.append(text)

    def planes(self, count: int) -> Sequence[Plane]:
        """Return the indices of the planes of a batch, each of which is one call.

        For a range of sizes a loop round the next call makes all of them.

        Raises:
            NotWrittenError: There are too many.
        """
        if self.is_ranged and count != 1:
            self.calls.append(f"for (int32_t plane = 0; plane < {count}; ++plane)")
            return ("plane",)
        if count > _MOST_CALLS:
            raise NotWrittenError(f"batch={count} is unsupported, supported: up to {_MOST_CALLS}")
        return range(count)

    def rows(self, tensor: Tensor) -> tuple[int, int]:
        """Return how many rows a tensor has in all, and how many elements each.

        Those of a list that does not lie in bands are one: its kernels take fewer calls.
        """
        if len(tensor.shape) < 2:
            return 1, tensor.num_elements
        if len(tensor.shape) == 2:
            count = tensor.shape[0]
        else:
            count = math.prod(tensor.shape[: 2 if self.num_rows else -2])
        return (count, tensor.num_elements // count) if count else (0, 0)

    @property
    def width(self) -> int:
        """Elements of a row of the first output."""
        return self.rows(self.output())[1]

    def row_pairs(
        self, rows: tuple[int, int] | None = None, source: Tensor | None = None
    ) -> tuple[str, str, int, int]:
        """Return the last arguments of a kernel that makes each row from the same row.

        Args:
            rows: Number of rows, and elements of each; by default those of the result.
            source: The operand; by default the first input.
        """
        source, result = source or self.input(), self.output()
        count, width = rows or self.rows(result)
        reads, writes = (width * each.dtype.bits // 8 for each in (source, result))
        return self.rows_of(source, reads), self.rows_to(result, writes), 0, count

    def image_rows(self, plane: Plane) -> tuple[str, str, int, int]:
        """Return the last arguments of a kernel that makes an image of a batch from one."""
        source, result = self.input(), self.output()
        reads, writes = (
            math.prod(each.shape[2:]) * each.dtype.bits // 8 for each in (source, result)
        )
        height = result.shape[1]
        return (
            self.rows_of(source, reads, plane, source.shape[1] * reads),
            self.rows_to(result, writes, plane, height * writes), 0, height,
        )  # fmt: skip

    def refuse_even(self, kind: str) -> None:
        """Refuse integers whose sums no kernel rounds by scales of floats."""
        if self.is_even:
            raise NotWrittenError(
                f"rounding=even is unsupported for {kind}, supported: double, single"
            )

    def as_step(self, operator: Operator, inputs: Iterable[str] | None = None) -> "StepWriter":
        """Return this step with another operator, its calls added to these."""
        step = replace(
            self.step,
            operator=operator,
            inputs=self.step.inputs if inputs is None else tuple(inputs),
        )
        return replace(self, step=step)


def _initialiser(fields: Iterable[tuple[str, str]]) -> str:
    """Return the values of a structure's fields, each behind its name, as C++11 allows."""
    lines, line = [], "   "
    for name, value in fields:
        item = f"/* {name} */ {value},"
        if len(without_symbols(f"{line}{item}")) + 1 > 98:
            lines.append(line)
            line = "   "
        line += f" {item}"
    lines.append(line.rstrip(","))
    return "{\n" + "\n".join(lines) + "\n}"


def _as_halves(array: Array) -> Array | None:
    """Return the bits of floats as halves, None if a half does not hold one of them."""
    with np.errstate(over="ignore", under="ignore"):
        halves = array.astype(np.float16)
    is_exact = np.array_equal(halves.astype(np.float32).view(np.uint32), array.view(np.uint32))
    return halves.view(np.uint16) if is_exact and np.isfinite(array).all() else None


def _upper_halves(array: Array) -> Array | None:
    """Return the upper 16 bits of floats (bfloat16), None if others of one are not 0."""
    bits = array.view(np.uint32)
    return None if (bits & 0xFFFF).any() else (bits >> 16).astype(np.uint16)


_NARROWINGS = (("f16", _as_halves), ("bf16", _upper_halves))


def is_mostly_narrow(constants: Iterable[Array]) -> bool:
    """Tell whether 16 bits hold most float weights exactly: those of a model stored so.

    Kernels of 16 bits for the few that fit by chance would take more flash than they save.
    """
    sizes = {False: 0, True: 0}
    for array in constants:
        if array.dtype == np.float32:
            is_narrow = any(narrowed(array) is not None for _, narrowed in _NARROWINGS)
            sizes[is_narrow] += array.size
    return sizes[True] > sizes[False]


Write: TypeAlias = Callable[[StepWriter], None]

_WRITERS: dict[type[Operator], Write] = {}


def writes(*operators: type[Operator]) -> Callable[[Write], Write]:
    """List a function as what writes the steps of some operators."""

    def listed(write: Write) -> Write:
        for operator in operators:
            assert operator not in _WRITERS, f"{operator.__name__} is listed twice"
            _WRITERS[operator] = write
        return write

    return listed


def writers() -> Mapping[type[Operator], Write]:
    return _WRITERS
