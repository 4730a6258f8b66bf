"""Copies, and images of another size."""

import math
from collections.abc import Sequence

import numpy as np

from arenite.planner import DType, Tensor
from arenite.planner.operators import Operands
from arenite.planner.sizes import Expression, depends, every_value, same
from arenite.planner.tensors import num_rows
from arenite.runtime.cexport.base.coded import KERNEL
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.fixed_point import scale_of, zero_of
from arenite.runtime.cexport.steps.writer import StepWriter, writes
from arenite.runtime.operators.movement import Append, Copy, Gather, LoadWeights, Resize2D
from arenite.runtime.operators.moves import Move

_DIMENSIONS = 4
_MOST_AXES = 6
"""Axes of indices of a gather."""
_MOST_SPLIT = 64
"""Calls that a copy of more dimensions is split into."""


@writes(LoadWeights)
def load_weights(t: StepWriter) -> None:
    """Write how a window is filled: decoded, or the beginning of a fetch."""
    if t.file.is_coded:
        t.file.kernels.add(KERNEL)
    window = t.output()
    t.calls += t.file.in_windows.started(window.name, t.address(window), window.size)


@writes(Copy)
def copy(t: StepWriter) -> None:
    """Write strided copies; elements already in their place are not moved.

    A join of rows may have one operand where its result begins. The rows of that operand are
    spread first, from the last to the first, before the other operands are written between them.

    Raises:
        NotWrittenError: Elements would be overwritten before they are moved.
    """
    operator = t.operator
    assert isinstance(operator, Copy)
    if t.num_rows:
        _copy_by_rows(t, operator)
        return
    if operator.fill:
        for position in range(len(t.step.outputs)):
            _fill(t, t.output(position), operator.fill)
    if any(each.dtype.bits % 8 for each in map(t.output, range(len(t.step.outputs)))):
        raise NotWrittenError(f"element type {t.output().dtype.label} is unsupported")
    moves = [each for each in operator.moves if math.prod(each.shape) and not _stays(t, each)]
    written = [(each, _written(t, each)) for each in moves]
    spread: list[Move] = []
    for move in moves:
        if not _shares_storage(t, move):
            continue
        read = _read(t, move)
        overwriting = [each for each, other in written if _meet(read, other)]
        if operator.fill or (overwriting and (spread or move not in overwriting)):
            raise NotWrittenError("the overlap of output and input is unsupported")
        if overwriting:
            spread.append(move)
    for move in spread:
        _spread(t, move)
    for move in moves:
        if move not in spread:
            _move(t, move)


def _copy_by_rows(t: StepWriter, operator: Copy) -> None:
    """Write moves of a part of each row into the same row of the result.

    Raises:
        NotWrittenError: Some move is something else.
    """
    result = t.output()
    rows, size = num_rows(result), result.dtype.bits // 8
    for move in operator.moves:
        source = t.input(move.input)
        axes = [
            each
            for each in zip(move.shape, move.input_strides, move.output_strides, strict=True)
            if not same(each[0], 1)
        ]
        widths = [each.num_elements // num_rows(each) for each in (source, result)]
        run = 1
        while len(axes) > int(rows > 1) and same(axes[-1][1], run) and same(axes[-1][2], run):
            run *= axes.pop()[0]
        is_by_rows = same(num_rows(source), rows) and axes == [(rows, *widths)][: len(axes)]
        starts = move.input_start, move.output_start
        fits = all(start + run <= width for start, width in zip(starts, widths, strict=True))
        if operator.fill or depends(rows) or not is_by_rows or not fits:
            raise NotWrittenError("bands of rows are unsupported for these moves")
        t.call(
            "copy_rows", run * size, *(start * size for start in starts),
            t.rows_of(source, widths[0] * size), t.rows_to(result, widths[1] * size), 0, rows,
        )  # fmt: skip


def _shares_storage(t: StepWriter, move: Move) -> bool:
    """Tell whether the two tensors of a move share bytes of the arena."""
    source, result = t.input(move.input), t.output(move.output)
    if t.layout.is_constant(source.name):
        return False
    one, other = t.layout.offset(source.name), t.layout.offset(result.name)
    return one < other + result.size and other < one + source.size


def _fill(t: StepWriter, result: Tensor, element: bytes) -> None:
    if not result.size:
        return
    pattern = np.frombuffer(element, np.uint8)
    if (pattern == pattern[0]).all():
        t.plain_call(
            f"memset({t.address(result)}, {int(pattern[0])}, {t.num_bytes(result.size)});"
        )
        return
    name = t.constant(pattern, "fill")
    t.call("fill", t.address(result), name, len(pattern), result.size)


def _ends(t: StepWriter, move: Move) -> tuple[str, str]:
    """Return where a move begins to read and to write."""
    source, result = t.input(move.input), t.output(move.output)
    size = result.dtype.bits // 8
    return (t.address(source, move.input_start, size), t.address(result, move.output_start, size))


def _stays(t: StepWriter, move: Move) -> bool:
    """Tell whether a move leaves every element where it is."""
    source, result = _ends(t, move)
    axes = zip(move.shape, move.input_strides, move.output_strides, strict=True)
    return source == result and all(same(one, other) for length, one, other in axes if length > 1)


def _read(t: StepWriter, move: Move) -> range:
    """Return the bytes of the arena from the first to the last that a move reads."""
    first = t.layout.offset(t.input(move.input).name)
    return _touched(t, move, first, move.input_start, move.input_strides)


def _written(t: StepWriter, move: Move) -> range:
    """Return the bytes of the arena from the first to the last that a move writes."""
    first = t.layout.offset(t.output(move.output).name)
    return _touched(t, move, first, move.output_start, move.output_strides)


def _touched(t: StepWriter, move: Move, first: int, start: int, strides: Sequence[int]) -> range:
    size = t.output(move.output).dtype.bits // 8
    reach = [(length - 1) * each for length, each in zip(move.shape, strides, strict=True)]
    low = start + sum(each for each in reach if each < 0)
    high = start + sum(each for each in reach if each > 0) + 1
    return range(first + low * size, first + high * size)


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


def _move(t: StepWriter, move: Move) -> None:
    source, result = t.input(move.input), t.output(move.output)
    size = result.dtype.bits // 8
    if t.file.is_compared:  # more axes may be one at another size
        lengths = *move.shape, *move.input_strides, *move.output_strides
        t.plain_call(" ".join(map(str, (*_ends(t, move), *lengths))))
        return
    axes, run = _merged(move, size)
    if axes:
        _loop(t, axes, run, source, result, (move.input_start * size, move.output_start * size))
        return
    place, to = _ends(t, move)
    t.plain_call(f"memcpy({to}, {place}, {t.num_bytes(run)});")


def _spread(t: StepWriter, move: Move) -> None:
    """Write a move within the bytes of both tensors, rows and their bytes from last to first.

    Raises:
        NotWrittenError: It is no move of rows to places further apart.
    """
    axes, run = _merged(move, t.output(move.output).dtype.bits // 8)
    ahead = _written(t, move).start - _read(t, move).start
    rows, apart, stride = axes[0] if axes else (1, run, run)
    if len(axes) > 1 or apart != run or stride < run or ahead < 0:
        raise NotWrittenError("the overlap of output and input is unsupported")
    t.call("spread", rows, run, stride, *_ends(t, move))


def _loop(
    t: StepWriter,
    axes: list[tuple[int, int, int]],
    run: int,
    source: Tensor,
    result: Tensor,
    starts: tuple[int, int],
) -> None:
    if len(axes) > _DIMENSIONS:
        (length, one, other), *rest = axes
        if length > _MOST_SPLIT or depends(length):
            raise NotWrittenError(f"more than {_DIMENSIONS} separate axes are unsupported")
        for index in range(length):
            shifted = starts[0] + index * one, starts[1] + index * other
            _loop(t, rest, run, source, result, shifted)
        return
    filled = [(1, 0, 0)] * (_DIMENSIONS - len(axes)) + axes
    fields: dict[str, float | str] = {"run": run}
    for place, (length, one, other) in enumerate(filled):
        fields |= {f"n{place}": length, f"from{place}": one, f"to{place}": other}
    layer = t.layer("copy_layer", **fields)
    t.call("copy", layer, t.address(source, 1, starts[0]), t.address(result, 1, starts[1]))


def _merged(move: Move, size: int) -> tuple[list[tuple[int, int, int]], int]:
    """Return axes as length and both strides in bytes, and the bytes of the runs within."""
    axes: list[tuple[int, int, int]] = []
    for length, one, other in zip(
        move.shape, move.input_strides, move.output_strides, strict=True
    ):
        if length == 1 and not depends(length):
            continue
        if axes:
            before, far, wide = axes[-1]
            if same(far, one * size * length) and same(wide, other * size * length):
                axes[-1] = (before * length, one * size, other * size)
                continue
        axes.append((length, one * size, other * size))
    if axes and all(same(each, size) for each in axes[-1][1:]):
        return axes[:-1], axes[-1][0] * size
    return axes, size


@writes(Append)
def append(t: StepWriter) -> None:
    """Write two moves: the rows kept to the front of the result, and the new ones behind them.

    Raises:
        NotWrittenError: The new rows lie where the result is written.
    """
    kept, added, result = t.input(), t.input(1), t.output()
    one, other = t.layout.offset(added.name), t.layout.offset(result.name)
    if one < other + result.size and other < one + added.size:
        raise NotWrittenError("the overlap of output and input is unsupported")
    size, count = result.dtype.bits // 8, result.num_elements - added.num_elements
    first, rest = t.address(kept, kept.num_elements - count, size), t.num_bytes(count * size)
    behind = t.address(result, count, size)
    t.plain_call(f"memmove({t.address(result)}, {first}, {rest});")
    t.plain_call(f"memcpy({behind}, {t.address(added)}, {t.num_bytes(added.size)});")


@writes(Resize2D)
def resize_2d(t: StepWriter) -> None:
    """Write an image of another size, one call a plane."""
    operator = t.operator
    assert isinstance(operator, Resize2D)
    source, result = t.input(), t.output()
    kind = t.types("int8", "uint8", "float32")
    batch, *_, depth = source.shape
    out_width = result.shape[2]
    if not operator.row_high:
        _check_places(t, operator)
    rows, columns = _places(t, operator.row_low), _places(t, operator.column_low)
    layer = "" if not operator.row_high else _blend(t, operator, kind, depth, out_width)
    for plane in t.planes(batch):
        if not layer:
            size = depth * source.dtype.bits // 8
            t.call("nearest_8", rows, columns, size, out_width, *t.image_rows(plane))
        else:
            even = "sizes_" if t.is_ranged else "even_" if t.is_even else ""
            suffix = "f32" if kind == "float32" else "s8"
            t.call(f"bilinear_{even}{suffix}", layer, *t.image_rows(plane))


def _check_places(t: StepWriter, operator: Resize2D) -> None:
    """Check that tables of the highest sizes name rows and columns that the others have, too.

    Raises:
        NotWrittenError: It is not.
    """
    for axis, places in ((1, operator.row_low), (2, operator.column_low)):
        source, result = t.input().shape[axis], t.output().shape[axis]
        if not depends(source) and not depends(result):
            continue
        made, read_from = Expression.of(result), Expression.of(source)
        names = made.names | read_from.names
        values = every_value([d for d in t.layout.program.dimensions if d.name in names])
        most = np.maximum.accumulate(np.array(places))
        rows, read = made.evaluate(values), read_from.evaluate(values)
        if np.any(most[np.maximum(rows, 1) - 1] >= np.maximum(read, 1)):
            raise NotWrittenError("places beyond the image are unsupported for a range of sizes")


def _places(t: StepWriter, indices: tuple[int, ...]) -> str:
    if max(indices) > np.iinfo(np.int16).max:
        raise NotWrittenError(
            f"an image of {max(indices) + 1} rows or columns is unsupported, supported: 32768"
        )
    return t.constant(np.array(indices, np.int16), "places")


def _blend(t: StepWriter, operator: Resize2D, kind: str, depth: int, out_width: int) -> str:
    """Return the layer of a blend of four pixels."""
    source, result = t.input(), t.output()
    structure = "resize_layer_f32" if kind == "float32" else "resize_layer"
    scales: dict[str, float] = {}
    if kind == "uint8":
        raise NotWrittenError("mode=linear of uint8 is unsupported")
    if t.is_ranged:
        if not t.is_even or kind != "float32":
            raise NotWrittenError(
                f"mode=linear of {kind} is unsupported for a range of sizes, supported: float32 "
                "with rounding=even"
            )
        structure = "resize_sizes_layer"
        scales = {"last_row": source.shape[1] - 1, "last_column": source.shape[2] - 1}
    elif t.is_even:
        structure, is_byte = "resize_even_layer", kind == "int8"
        for name, each in (("in", source), ("out", result)):
            scales[f"{name}_scale"] = scale_of(each) if is_byte else 1.0
            scales[f"{name}_zero"] = zero_of(each) if is_byte else 0
    elif kind == "int8" and source.quantisation != result.quantisation:
        raise NotWrittenError("an output scale other than the input's is unsupported")

    def weights(stated: tuple[float, ...]) -> str:
        array = np.array(stated, np.float32)
        if structure == "resize_layer":
            array = np.floor(np.array(stated) * 1024 + 0.5).astype(np.int16)
        return t.constant(array, "blend")

    return t.layer(
        structure,
        **scales,
        depth=depth,
        out_width=out_width,
        row_low=_places(t, operator.row_low),
        row_high=_places(t, operator.row_high),
        column_low=_places(t, operator.column_low),
        column_high=_places(t, operator.column_high),
        row_weight=weights(operator.row_weight),
        column_weight=weights(operator.column_weight),
    )


@writes(Gather)
def gather(t: StepWriter) -> None:
    """Write a gather of slices by their index."""
    operator = t.operator
    assert isinstance(operator, Gather)
    data, indices, result = t.input(0), t.input(1), t.output()
    if indices.dtype not in (DType.INT32, DType.INT64):
        raise NotWrittenError(f"indices of {indices.dtype.label} are unsupported")
    axis, batch_axes = operator.axis, operator.batch_axes
    num_axes = operator.num_axes
    if num_axes > _MOST_AXES:
        raise NotWrittenError(
            f"indices of {num_axes} axes are unsupported, supported: up to {_MOST_AXES}"
        )
    if data.dtype.bits % 8 or data.quantisation != result.quantisation:
        raise NotWrittenError(
            "elements below 8 bits and an output scale other than the input's are unsupported"
        )
    places = indices.shape[batch_axes : len(indices.shape) - (num_axes > 1)]
    batches, count = math.prod(data.shape[:batch_axes]), math.prod(places)
    fields = {
        "outer": math.prod(data.shape[batch_axes:axis]),
        "length": math.prod(data.shape[axis : axis + num_axes]),
        "size": math.prod(data.shape[axis + num_axes :]) * data.dtype.bits // 8,
    }
    if num_axes > 1:
        lengths = (*data.shape[axis : axis + num_axes], *(1,) * (_MOST_AXES - num_axes))
        fields |= {"axes": num_axes, **{f"n{each}": n for each, n in enumerate(lengths)}}
        layer = t.layer("gather_axes_layer", batches=batches, count=count, **fields)
        kernel = f"gather_axes_{indices.dtype.bits}"
        t.call(kernel, layer, *map(t.address, (data, indices, result)))
        return
    is_by_rows = operator.makes_rows(Operands((data, indices), (result,)))
    rows = indices.shape[1] if is_by_rows else batches
    each = math.prod(indices.shape[2:]) if is_by_rows else count
    apart = 0 if is_by_rows else fields["outer"] * fields["length"] * fields["size"]
    layer = t.layer("gather_layer", count=each, apart=apart, **fields)
    t.call(
        f"gather_{indices.dtype.bits}", layer, t.address(data),
        t.rows_of(indices, each * indices.dtype.bits // 8),
        t.rows_to(result, fields["outer"] * each * fields["size"]), 0, rows,
    )  # fmt: skip
