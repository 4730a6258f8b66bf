"""Programs for a range of sizes, made of programs for fixed ones that share no code with ours.

Lengths and numbers of a step are taken from programs of three sizes: what differs lies on a
parabola through them, which the program of a fourth size must confirm.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from arenite.pipeline.base import Reading
from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime.program import Assembly
from arenite.runtime.rewrites import Activations
from arenite.strategies import find
from support.edited_programs import Root
from support.tiny_onnx import parse, save, with_random_weights


@dataclass
class _Expressions:
    """The expressions of one dimension, each written once."""

    found: list[dict[str, Any]] = field(default_factory=list)

    def add(self, operation: str, a: int, b: int = 0) -> int:
        entry = {"operation": operation, "a": a, "b": b}
        if entry not in self.found:
            self.found.append(entry)
        return self.found.index(entry)

    def parabola(self, points: Sequence[tuple[int, int]]) -> tuple[Callable[[int], int], int]:
        """Return the whole numbers on the parabola through three points, and their expression."""
        factors = [Fraction(0)] * 3
        for size, value in points:
            one, other = (each for each, _ in points if each != size)
            scale = Fraction(value, (size - one) * (size - other))
            for degree, part in enumerate((one * other, -one - other, 1)):
                factors[degree] += scale * part
        denominator = math.lcm(*(each.denominator for each in factors))
        c, b, a = (int(each * denominator) for each in factors)
        n = self.add("dimension", 0)
        inner = self.add("add", self.add("multiply", n, self.add("constant", a)),
                         self.add("constant", b))  # fmt: skip
        total = self.add("add", self.add("multiply", inner, n), self.add("constant", c))
        found = self.add("divide", total, self.add("constant", denominator))
        return lambda size: ((a * size + b) * size + c) // denominator, found


def numbers_of(step: Root) -> list[int]:
    """Return the numbers of a step that may depend on sizes, in the order of the schema."""
    kernel = step["kernel"]
    if step["kernel_type"] != "Copy":
        tiles = [kernel[name] for name in ("tile", "tuned_tile") if name in kernel]
        window = kernel.get("window", [])  # of attention it is one number, the same at all sizes
        window = window if isinstance(window, list) else []
        return [*kernel.get("padding", []), *window, *tiles]
    return [
        number
        for move in kernel.get("moves", [])
        for number in (
            *move["shape"], move.get("input_start", 0), *move["input_strides"],
            move.get("output_start", 0), *move["output_strides"],
        )
    ]  # fmt: skip


def ranged(build: Callable[[int], Assembly], low: int, high: int, step: int = 1) -> Assembly:
    """Return the program of all sizes from `low` to `high`, of which `n` is the dimension."""
    between = low + (high - low) // step // 2 * step
    parts = {size: build(size) for size in (high, low, between, low + step)}
    expressions = _Expressions()

    def expression(*values: int) -> int | None:
        """Return the expression of values at these sizes; none if they are one constant."""
        if len(set(values)) == 1:
            return None
        points = list(zip(parts, values, strict=True))
        at, found = expressions.parabola(points[:3])
        assert all(at(size) == value for size, value in points), f"{values} are no parabola"
        return found

    def together(key: str) -> Iterator[tuple[int, list[Root]]]:
        lists = [part.root[key] for part in parts.values()]
        yield from enumerate(map(list, zip(*lists, strict=True)))

    axes, numbers = [], []
    scratch = {each.get("scratch") for each in parts[high].root["steps"]}
    for index, tensors in together("tensors"):
        if index in scratch:  # as much as at the highest size
            continue
        assert len({(each["name"], each["type"]) for each in tensors}) == 1
        shapes = [each["shape"] for each in tensors]
        for axis, lengths in enumerate(zip(*shapes, strict=True)):
            found = expression(*lengths)
            if found is not None:
                axes.append({"tensor": index, "axis": axis, "expression": found})
    for index, steps in together("steps"):
        assert len({each["kernel_type"] for each in steps}) == 1
        for number, values in enumerate(zip(*map(numbers_of, steps), strict=True)):
            found = expression(*values)
            if found is not None:
                numbers.append({"step": index, "number": number, "expression": found})
    root = copy.deepcopy(parts[high].root)
    root |= {
        "dimensions": [{"name": "n", "low": low, "high": high, "step": step}],
        "expressions": expressions.found, "axes": axes, "numbers": numbers,
    }  # fmt: skip
    return replace(parts[high], root=root)


def built(folder: Path, text: Callable[[int], str], reading: Reading) -> Callable[[int], Assembly]:
    """Return what builds the program of a network at a size."""

    def build(size: int) -> Assembly:
        path = save(folder, with_random_weights(parse(text(size))))
        compiled = compile_model(path, reading)
        return compiled.assemble(find("best")(compiled.source.problem))

    return build


def attention(n: int) -> str:
    return text(n).replace("p = Abs(c)", "p = Identity(c)")


def text(n: int) -> str:  # the Abs between keeps attention three steps
    return f"""(float[1,{n},16] x) => (y)
<float[16,16] wq, float[16,16] wk, float[16,16] wv, float[16,32] w1, float[32,16] w2, float[16] g,
float[16] b, int64[4] h = {{0,0,4,4}}, int64[3] m = {{0,0,16}}>
{{ q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)
  qh = Reshape(q, h) kh = Reshape(k, h) vh = Reshape(v, h)
  qt = Transpose<perm=[0,2,1,3]>(qh) kt = Transpose<perm=[0,2,3,1]>(kh)
  vt = Transpose<perm=[0,2,1,3]>(vh)
  s = MatMul(qt, kt) c = Softmax<axis=-1>(s) p = Abs(c) o = MatMul(p, vt)
  oo = Transpose<perm=[0,2,1,3]>(o) r = Reshape(oo, m) a = Add(r, x)
  n = LayerNormalization<axis=-1>(a, g, b) f = MatMul(n, w1) e = Tanh(f) t = MatMul(e, w2)
  y = Add(t, n) }}"""


def images(n: int) -> str:
    return f"""(float[1,3,{n},{n}] x) => (y, z, b)
<float[8,3,3,3] w, float[8,1,3,3] d, float[8,5] f, float[8,4,2,2] up,
int64[8] s = {{0,0,1,1,0,0,1,1}}, float[4] k = {{1,1,2,2}}>
{{ c = Conv<pads=[1,1,1,1]>(x, w) e = Conv<group=8, pads=[1,1,1,1]>(c, d)
  h = Tanh(e) a = Add(h, c) o = Pad(a, s) p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)
  j = Concat<axis=1>(p, p) u = Resize<mode="linear">(j, , k)
  v = ConvTranspose<strides=[2,2]>(p, up) z = ReduceSum<keepdims=0>(o)
  m = GlobalAveragePool(p) q = Flatten(m) l = Gemm(q, f) y = Add(l, l) i = Add(u, u)
  i2 = ReduceMax<axes=[1]>(i) i3 = ReduceMax<axes=[1]>(v) b = Add(i2, i3) }}"""


NETWORKS = {
    "text": (text, 2, 40, 1),
    "attention by steps": (attention, 8, 64, 8),
    "images": (images, 4, 32, 2),
    "images of halves": (images, 8, 32, 2),
}


def range_of(folder: Path, network: str) -> tuple[Callable[[int], Assembly], Assembly]:
    """Return what builds one of the networks at a size, and its program of all sizes."""
    form, low, high, step = NETWORKS[network]
    activations = Activations.FP16 if network.endswith("halves") else None
    build = built(folder, form, Reading(activations=activations))
    return build, ranged(build, low, high, step)
