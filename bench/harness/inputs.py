"""Where the models and instances of the benchmarks come from.

Three sources: the networks inside the `onnx` package, the zoo, which writes its files on demand,
and the trained models that may lie in `../shared` beside the checkout, which are not part of the
project.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import onnx

from arenite.pipeline.base.reading import Reading
from bench.zoo import EDGE, MEDIAPIPE, NETWORKS, OPEN, SEQUENCES, SMALL, TRANSFORMERS
from bench.zoo.classic import vgg16

CHECKOUT = Path(__file__).resolve().parents[2]
SHARED = CHECKOUT.parent / "shared"
SHARED_ONNX = SHARED / "models" / "onnx"
SHARED_TFLITE = SHARED / "models" / "tflite"
_LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

DIMS: Mapping[str, Mapping[str, int]] = {
    "openseeface_lm_model0_opt": {"batch_size": 1},
    "silero_vad_16k_op15": {"batch": 1, "sequence": 576},
    "whisper-tiny-decoder": {"past_sequence_length": 447},
}
"""Dimensions that a file leaves open, by its stem."""

SHAPES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "openseeface_lm_model0_opt": {"input": (1, 3, 224, 224)},
    "silero_vad_16k_op15": {"input": (1, 576), "state": (2, 1, 128)},
}
"""The same as shapes of inputs: ONNX Runtime gives open dimensions names of its own."""


READINGS: Mapping[str, Reading] = {
    "ch_PP-OCRv4_det_infer": Reading(shapes={"x": (1, 3, 320, 320)}),
    "ch_PP-OCRv4_rec_infer": Reading(shapes={"x": (1, 3, 48, 320)}),
    "ppocr4_rec": Reading(shapes={"x": (1, 3, 48, 320)}),
    "silero_vad": Reading(shapes={"input": (1, 576), "state": (2, 1, 128)}, values={"sr": 16000}),
    "silero_vad_16k_op15": Reading({"batch": 1, "sequence": 576}, shapes={"state": (2, 1, 128)}),
}
"""How files are read that dimensions alone do not settle."""


def dims_of(path: Path) -> dict[str, int]:
    """Return the values of the dimensions that a file leaves open."""
    return dict(DIMS.get(path.stem, {}))


def reading_of(path: Path) -> Reading:
    """Return how a file is read that leaves sizes or values open."""
    return READINGS.get(path.stem, Reading(dims_of(path)))


def light_networks() -> list[Path]:
    """Return the networks inside the `onnx` package; their weights are constants."""
    return sorted(_LIGHT.glob("light_*.onnx"))


def shared_onnx() -> list[Path]:
    """Return the ONNX models of `../shared`, none where it is absent."""
    return sorted(SHARED_ONNX.glob("*.onnx"))


def shared_tflite(names: Sequence[str] | None = None) -> list[Path]:
    """Return the TFLite models of `../shared`, or those of these names that are there."""
    if names is None:
        return sorted(SHARED_TFLITE.glob("*.tflite"))
    return [path for name in names if (path := SHARED_TFLITE / f"{name}.tflite").is_file()]


def package_file(package: str, path: str) -> Path:
    """Return a file inside an installed package; there is none where the package is absent."""
    found = find_spec(package)
    folders = (found and found.submodule_search_locations) or [package]
    return Path(folders[0], path)


def zoo_file(name: str, folder: Path) -> Path:
    """Write a network of the zoo to a folder and return its path."""
    path = folder / f"{name}.onnx"
    networks = {
        **NETWORKS, **MEDIAPIPE, **SMALL, **EDGE, **SEQUENCES, **OPEN, **TRANSFORMERS,
        "vgg16": vgg16,
    }  # fmt: skip
    onnx.save(networks[name](), path)
    return path


def zoo_files(names: Iterable[str], folder: Path) -> Iterator[Path]:
    """Yield the paths of networks of the zoo, each written to a folder when it is asked for."""
    for name in names:
        yield zoo_file(name, folder)


TFLITE_MODELS = f"name .tflite files, or put some into {SHARED_TFLITE}"
"""What to do when there is no TFLite model."""
