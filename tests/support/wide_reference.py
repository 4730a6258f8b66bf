"""The reference evaluator of the onnx package, in 64 bits where it lacks or rounds something."""

import itertools
import math
from typing import Any, ClassVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

Array = NDArray[Any]


class ConvTranspose(OpRun):  # type: ignore[misc]  # the onnx package ships no types
    """Groups, which the package's own refuses."""

    op_domain: ClassVar[str] = ""

    def _run(self, x: Array, w: Array, b: Array | None = None, **how: Any) -> tuple[Array]:
        axes = x.ndim - 2
        groups = how["group"] or 1
        strides, dilations = how["strides"] or [1] * axes, how["dilations"] or [1] * axes
        pads, more = how["pads"] or [0] * 2 * axes, how["output_padding"] or [0] * axes
        full = [
            (x.shape[2 + a] - 1) * strides[a] + (w.shape[2 + a] - 1) * dilations[a] + 1 + more[a]
            for a in range(axes)
        ]
        made = np.zeros((x.shape[0], w.shape[1] * groups, *full), x.dtype)
        inner, outer = x.shape[1] // groups, w.shape[1]
        for group in range(groups):
            source = x[:, group * inner : (group + 1) * inner]
            filters = w[group * inner : (group + 1) * inner]
            target = made[:, group * outer : (group + 1) * outer]
            for tap in itertools.product(*(range(n) for n in w.shape[2:])):
                places = tuple(
                    slice(t * d, t * d + (n - 1) * s + 1, s)
                    for t, d, n, s in zip(tap, dilations, x.shape[2:], strides, strict=True)
                )
                here: Any = (slice(None), slice(None), *tap)
                seen = np.tensordot(source, filters[here], (1, 0))
                target[(slice(None), slice(None), *places)] += np.moveaxis(seen, -1, 1)
        cut = tuple(slice(pads[a], full[a] - pads[axes + a]) for a in range(axes))
        found = made[(slice(None), slice(None), *cut)]
        return (found if b is None else found + b.reshape(-1, *[1] * axes),)


class MaxPool(OpRun):  # type: ignore[misc]  # the onnx package ships no types
    """The first of the largest, and where it is in the whole image."""

    op_domain: ClassVar[str] = ""

    def _run(self, x: Array, **how: Any) -> tuple[Array, ...]:
        axes = x.ndim - 2
        kernel = how["kernel_shape"]
        strides, dilations = how["strides"] or [1] * axes, how["dilations"] or [1] * axes
        pads = how["pads"] or [0] * 2 * axes
        rooms = [
            x.shape[2 + a] + pads[a] + pads[axes + a] - (kernel[a] - 1) * dilations[a] - 1
            for a in range(axes)
        ]
        more = [s - 1 if how["ceil_mode"] else 0 for s in strides]
        counts = [(rooms[a] + more[a]) // strides[a] + 1 for a in range(axes)]
        pads = [*pads[:axes], *(pads[axes + a] + more[a] for a in range(axes))]
        widths = [(0, 0), (0, 0), *((pads[a], pads[axes + a]) for a in range(axes))]
        padded = np.pad(x, widths, constant_values=-np.inf)
        places = np.pad(np.arange(x.size).reshape(x.shape), widths, constant_values=-1)
        taps: list[tuple[Array, Array]] = []
        for tap in itertools.product(*(range(n) for n in kernel)):
            seen = (slice(None), slice(None), *(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilations, counts, strides, strict=True)
            ))  # fmt: skip
            taps.append((padded[seen], places[seen]))
        values, where = (np.stack(each) for each in zip(*taps, strict=True))
        best = values.argmax(0)[np.newaxis]
        made, indices = (np.take_along_axis(each, best, 0)[0] for each in (values, where))
        return (made, indices)[: self.num_outputs]

    @property
    def num_outputs(self) -> int:
        """Number of outputs that the node has."""
        return len(self.onnx_node.output)


class Erf(OpRun):  # type: ignore[misc]  # the onnx package ships no types
    """In 64 bits; the package's own rounds to 32."""

    op_domain: ClassVar[str] = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.vectorize(math.erf, otypes=[x.dtype])(x),)


class Pad(OpRun):  # type: ignore[misc]  # the onnx package ships no types
    """In any mode, along some axes; negative padding cuts."""

    op_domain: ClassVar[str] = ""

    def _run(
        self,
        x: Array,
        pads: Array,
        value: Array | None = None,
        axes: Array | None = None,
        **how: Any,
    ) -> tuple[Array]:
        sides = np.zeros((x.ndim, 2), np.int64)
        sides[range(x.ndim) if axes is None else axes] = pads.reshape(2, -1).T
        cut = x[
            tuple(
                slice(max(0, -b), n + min(0, e)) for (b, e), n in zip(sides, x.shape, strict=True)
            )
        ]
        around = np.maximum(sides, 0)
        if how["mode"] not in (None, "constant"):
            return (np.pad(cut, around, how["mode"]),)
        fill = 0 if value is None else value.item()
        return (np.pad(cut, around, constant_values=fill),)


def evaluator(model: onnx.ModelProto) -> ReferenceEvaluator:
    """Return what runs a model."""
    return ReferenceEvaluator(model, new_ops=[ConvTranspose, MaxPool, Erf, Pad])
