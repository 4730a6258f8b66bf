"""The arenas of models that the tests make, kept in the tree so that none grows unnoticed.

    PYTHONPATH=tests python -m support.byte_figures

writes `bench/byte_figures.json` anew: at a release, and after a change that makes an arena
smaller or is worth a larger one. Bytes are exact, the same on every machine.
"""

import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any, Final

from support.command import main
from support.hostile_models import ONNX_TEXTS, onnx_model, tflite_chains
from support.quantised_chain import mobile, residual
from support.small_networks import NETWORKS, network
from support.tflite_networks import autoencoder, classifier, detector, keyword, pooled, tall, tower

FIGURES: Final = Path(__file__).resolve().parents[2] / "bench" / "byte_figures.json"
FOLDER: Final = "models"
_KEPT: Final = ("model", "naive", "lower_bound", "results")
_KEPT_OF_RESULTS: Final = ("strategy", "height")

_TFLITE: Final[Mapping[str, Callable[[], bytes]]] = {
    "autoencoder": autoencoder, "classifier": classifier, "detector": detector,
    "keyword": keyword, "mobile": mobile, "pooled": pooled, "residual": residual, "tall": tall,
    "tower": tower,
}  # fmt: skip


def write_models(folder: Path) -> None:
    """Write the models into a new folder, of the name that the figures have."""
    place = folder / FOLDER
    place.mkdir()
    for name in NETWORKS:
        if "," not in name:  # which is another way to train the same
            (place / f"{name}.onnx").write_bytes(network(name).SerializeToString())
    for name in ONNX_TEXTS:
        (place / f"{name}.onnx").write_bytes(onnx_model(name).SerializeToString())
    for name, made in _TFLITE.items():
        (place / f"{name}.tflite").write_bytes(made())
    for name, data in tflite_chains().items():
        (place / f"chain of {name}.tflite").write_bytes(data)


def compared(model: str) -> tuple[str, ...]:
    """Return the words that compare a model, in the folder that holds the models' folder.

    One model a command: several would each have a process of their own.
    """
    has_free_size = Path(model).stem in {"layers", "to compress"}
    return ("compare", model, *(("--dim", "n=1") if has_free_size else ()),
            "--strategy", "best", "--strategy", "greedy-by-size", "--json")  # fmt: skip


def without_times(compared: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is the same on every machine of what `compare --json` says."""
    models = [{key: model[key] for key in _KEPT} for model in compared["models"]]
    for model in models:
        model["results"] = [
            {key: result[key] for key in _KEPT_OF_RESULTS} for result in model["results"]
        ]
    return {"models": models}


def figures(folder: Path) -> dict[str, Any]:
    """Return the figures of the models, which are written into a folder first."""
    write_models(folder)
    models = []
    for path in sorted((folder / FOLDER).iterdir()):
        with chdir(folder), redirect_stdout(io.StringIO()) as out:
            code = main(compared(path.relative_to(folder).as_posix()))
        assert code == 0, path
        models += without_times(json.loads(out.getvalue()))["models"]
    return {"models": models}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        found = figures(Path(name))
    FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{os.path.relpath(FIGURES)}: {len(found['models'])} models\n")
