"""Systems of small models: a detector that hands two images on, a chain, one with a state."""

from pathlib import Path

from support.tiny_onnx import parse, save, with_random_weights

DETECTOR = """(float[1,3,16,16] image) => (boxes, crop)
<float[8,3,3,3] w, float[4,8,3,3] u, float[5,8,1,1] v>
{ a = Conv<pads=[1,1,1,1]>(image, w) b = Relu(a) c = Conv<pads=[1,1,1,1]>(b, u) crop = Relu(c)
  boxes = Conv(b, v) }"""

LANDMARKS = """(float[1,4,16,16] crop, float[1,4,1,1] scale) => (points)
<float[16,4,3,3] w, float[2,16,1,1] u>
{ s = Mul(crop, scale) a = Conv<pads=[1,1,1,1],strides=[2,2]>(s, w) b = Relu(a)
  c = Conv(b, u) points = Tanh(c) }"""

IRIS = """(float[1,4,16,16] crop) => (gaze)
<float[12,4,5,5] w, float[12,12,1,1] u>
{ a = Conv(crop, w) b = Sigmoid(a) c = Conv(b, u) gaze = GlobalAveragePool(c) }"""

SPEECH = """(float[1,2,40,8] sound) => (words)
<float[16,2,3,3] w, float[16,16,3,3] u, float[3,16,1,1] v>
{ a = Conv<pads=[1,1,1,1]>(sound, w) b = Relu(a) c = Conv<pads=[1,1,1,1]>(b, u) d = Relu(c)
  e = Conv(d, v) words = Softmax<axis=1>(e) }"""

NEGATIVE = """(float[1,4,16,16] crop) => (negative)
{ n = Neg(crop) negative = Abs(n) }"""

MODELS = {
    "detector": DETECTOR, "landmarks": LANDMARKS, "iris": IRIS, "speech": SPEECH,
    "negative": NEGATIVE,
}  # fmt: skip

CONNECTED = """
[[connect]]
from = "detector.crop"
to = "landmarks.crop"

[[connect]]
from = "detector.crop"
to = "iris.crop"
"""


def write_system(
    folder: Path, schedule: str, *models: str, more: str = "", keep: str = ""
) -> Path:
    """Write some of the models and a description of a system of them.

    Args:
        schedule: As in TOML, without the brackets.
        models: Names of models.
        more: Further lines of TOML.
        keep: An output that is kept, `MODEL.OUTPUT`.
    """
    lines = [f"schedule = [{schedule}]"]
    for seed, name in enumerate(models):
        save(folder, with_random_weights(parse(MODELS[name]), seed)).rename(
            folder / f"{name}.onnx"
        )
        lines += [f"[models.{name}]", f'path = "{name}.onnx"']
        if keep.startswith(f"{name}."):
            lines.append(f'keep = ["{keep.removeprefix(f"{name}.")}"]')
    path = folder / "system.toml"
    path.write_text("\n".join((*lines, more)), encoding="utf-8")
    return path


RANGED = """
[models.short]
path = "short.onnx"
dims = { n = "1..40" }
keep = ["y"]

[models.long]
path = "long.onnx"
shapes = { x = [1, 4, "2..60:2", 6] }
"""


def write_ranged_system(folder: Path, kind: str) -> Path:
    """Write a system of two models for ranges of sizes, in a section of a kind."""
    text = (
        "(float[1,4,n,6] x) => (y) <float[8,4,3,3] w, float[8,8,1,1] v> "
        "{ a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) c = Conv(b, v) y = Sigmoid(c) }"
    )
    for seed, name in enumerate(("short", "long")):
        save(folder, with_random_weights(parse(text), seed)).rename(folder / f"{name}.onnx")
    path = folder / "system.toml"
    path.write_text(f'schedule = [{{ {kind} = ["short", "long"] }}]{RANGED}', encoding="utf-8")
    return path
