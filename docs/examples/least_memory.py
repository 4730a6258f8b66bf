"""From a published ONNX model to the least memory that it runs in, every step shown.

    python least_memory.py                                  a network inside the package `onnx`
    python least_memory.py model.onnx [--dim batch=1 ...]   a file
    python least_memory.py OWNER/NAME model.onnx            a file of a Hugging Face repository,
                                                            from its cache where it is there

What follows the name of the model goes to every command. Writes `least/MODEL.arena`.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from arenite.runtime.session import Session

SHIPPED = "light_squeezenet.onnx"
TOLERANCE = 1e-4


def main(words: list[str]) -> int:
    """Print what the model needs in each way of running it, and build the least."""
    model, options = fetched(words)
    print(f"{model}: {model.stat().st_size:,} B\n")

    # As it would be without a planner, and as written but well placed.
    written = arenite("plan", model, "--target", "generic", "--order", "given", *options)
    # Whole on our runtime, and every program between that and the least, in bands of rows.
    frontier = arenite("fit", model, "--time-limit", "20", *options)["frontier"]
    whole, least = frontier[0], min(frontier, key=lambda each: each["height"])

    folder = Path("least")
    folder.mkdir(exist_ok=True)
    program = folder / f"{model.stem}.arena"
    arenite("fit", model, "--budget", str(least["height"]), "-o", program, *options)
    error = checked(program, model)

    rows = [
        ("a buffer for each tensor", written["naive"], ""),
        ("as written, in one arena", written["height"], ""),
        ("on our runtime, whole", whole["height"], ""),
        ("the same in bands of rows", least["height"], f"{least['predicted_slowdown']:+.0%} time"),
    ]
    print()
    for what, size, price in rows:
        print(f"{what:26} {size:12,} B {size / rows[0][1]:6.1%}  {price}")
    print(f"\n{program} gives what ONNX Runtime does, to {error:.1e} of the largest output")
    return int(error > TOLERANCE)


def fetched(words: list[str]) -> tuple[Path, list[str]]:
    """Return the model's file and the options after its name."""
    if not words:
        data = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
        return data / SHIPPED, []
    first, *rest = words
    if Path(first).is_file() or not rest:
        return Path(first), rest
    from huggingface_hub import hf_hub_download  # pip install huggingface_hub

    file, *options = rest
    return Path(hf_hub_download(first, file)), options


def arenite(*words: str | Path) -> dict:
    """Show a command, run it, and return what it answers to `--json`."""
    command = ["arenite", *map(str, words)]
    print("$", shlex.join(command), flush=True)
    done = subprocess.run(
        [sys.executable, "-m", *command, "--json"], stdout=subprocess.PIPE, check=False
    )
    if done.returncode:  # the reason is on standard error; free dimensions are named there
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def checked(program: Path, model: Path) -> float:
    """Return how far outputs on random inputs are from ONNX Runtime's."""
    random = np.random.default_rng(0)
    with Session(program) as session:
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
    sys.exit(main(sys.argv[1:]))
