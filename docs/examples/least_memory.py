"""From a published ONNX model to the least memory that it runs in.

    python least_memory.py                                  a network of the `onnx` package
    python least_memory.py model.onnx [batch=1 ...]         a file, with its free dimensions
    python least_memory.py OWNER/NAME model.onnx            a file of a Hugging Face repository

Writes `least/MODEL.arena`.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import arenite

SHIPPED = "light_squeezenet.onnx"
TOLERANCE = 1e-4


def main(words: list[str]) -> int:
    """Print what the model needs in each way of running it, and build the least."""
    model, dims = fetched(words)
    print(f"{model}: {model.stat().st_size:,} B\n")

    # The graph as written, in the order of the file.
    written = arenite.plan(model, target="generic", order="given", dims=dims)
    # Our runtime: the whole program first, then programs in bands of rows.
    frontier = arenite.fit_frontier(model, dims=dims, time_limit_s=20)
    whole, least = frontier[0], min(frontier, key=lambda each: each.height)

    program = Path("least") / f"{model.stem}.arena"
    program.parent.mkdir(exist_ok=True)
    least.save(program)
    error = checked(program, model)

    rows = [
        ("a buffer for each tensor", written.problem.naive, ""),
        ("as written, in one arena", written.height, ""),
        ("on our runtime, whole", whole.height, ""),
        ("the same in bands of rows", least.height, f"{least.slowdown:+.0%} time"),
    ]
    for what, size, price in rows:
        print(f"{what:26} {size:12,} B {size / rows[0][1]:6.1%}  {price}")
    print(f"\n{program} gives what ONNX Runtime does, to {error:.1e} of the largest output")
    return int(error > TOLERANCE)


def fetched(words: list[str]) -> tuple[Path, dict[str, int]]:
    """Return the model's file and its dimensions."""
    if not words:
        data = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
        return data / SHIPPED, {}
    first, *rest = words
    if rest and "=" not in rest[0]:
        from huggingface_hub import hf_hub_download  # pip install huggingface_hub

        first = hf_hub_download(first, rest.pop(0))
    pairs = (word.split("=") for word in rest)
    return Path(first), {name: int(size) for name, size in pairs}


def checked(program: Path, model: Path) -> float:
    """Return how far outputs on random inputs are from ONNX Runtime's."""
    random = np.random.default_rng(0)
    with arenite.Session(program) as session:
        feeds = {
            each.name: random.random(each.shape, np.float32)
            for each in session.inputs
            if np.dtype(each.dtype) == np.float32
        }
        ours = session.run(feeds)
    stock = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in stock.get_outputs()]
    expected = dict(zip(names, stock.run(names, feeds), strict=True))
    return max(
        float(np.abs(ours[name] - each).max() / max(np.abs(each).max(), 1e-30))
        for name, each in expected.items()
    )


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except arenite.AreniteError as error:  # free dimensions are named there
        sys.exit(f"error: {error}")
