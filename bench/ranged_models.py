"""Models for a range of sizes, of the zoo and of `../shared`."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.base.ranges import along
from arenite.pipeline.base.reading import Reading
from arenite.planner.sizes import Dimension, at
from bench.harness.contest import note
from bench.harness.inputs import SHARED_ONNX, zoo_file
from bench.quantised import open_network

COMPARED = 5
"""Sizes of each model at which programs are compared, from the lowest to the highest."""


@dataclass(frozen=True, slots=True)
class RangedModel:
    """A model and its range.

    Attributes:
        dims: Its dimensions; a name of an input and an axis where they have none.
        values: Inputs of one integer, fixed in our program.
        has_8_bits: Whether its outputs differ from ONNX Runtime's by whole quanta.
    """

    name: str
    path: Path
    dims: Mapping[str, int | Dimension]
    values: Mapping[str, float] = field(default_factory=dict)
    has_8_bits: bool = False

    @property
    def ranges(self) -> list[Dimension]:
        return [each for each in self.dims.values() if isinstance(each, Dimension)]

    def reading(self, sizes: Mapping[str, int] | None = None) -> Reading:
        """Return how the model is read, for all sizes or for these."""
        if sizes is None:
            return Reading(dims=self.dims, values=self.values)
        dims = {name: sizes.get(name, each) for name, each in self.dims.items()}
        fixed = {
            n: each if isinstance(each, Dimension) else at(each, sizes) for n, each in dims.items()
        }
        return Reading(dims=fixed, values=self.values)

    @property
    def fixed(self) -> dict[str, NDArray[Any]]:
        """The inputs that our program does not have."""
        return {name: np.array(int(value)) for name, value in self.values.items()}

    def random_sizes(self, generator: random.Random) -> dict[str, int]:
        return {each.name: generator.choice(each.values) for each in self.ranges}

    def sizes_between(self) -> list[dict[str, int]]:
        """Return the lowest sizes, some between and the highest."""
        return along(self.ranges, COMPARED)


def ranged_models(folder: Path, part: str | None = None) -> Iterator[RangedModel]:
    """Yield the models whose names contain a text, each from a file.

    Args:
        folder: Where networks of the zoo are written.
        part: The text; None for all models.
    """
    return (each for each in _all_of_them(folder) if part is None or part in each.name)


def _all_of_them(folder: Path) -> Iterator[RangedModel]:
    shared = {path.stem: path for path in SHARED_ONNX.glob("*.onnx")}

    def zoo(label: str, name: str, *dims: Dimension) -> RangedModel:
        return RangedModel(label, zoo_file(name, folder), {each.name: each for each in dims})

    def real(
        label: str, stem: str, values: Mapping[str, float] | None = None, **dims: int | Dimension
    ) -> Iterator[RangedModel]:
        if stem in shared:
            yield RangedModel(label, shared[stem], dims, values or {})
        else:
            note(f"{label}: left out: {stem}.onnx is not in {SHARED_ONNX}")

    tokens = Dimension("tokens", 1, 128)
    yield zoo("text encoder, BERT-mini", "bert-mini-open", tokens)
    yield from real("text model, embedding to words", "tr_vespa_dummy_transformer_mlm",
                    batch=1, tokens=tokens)  # fmt: skip
    yield zoo("sound, temporal convolutions", "temporal-open", Dimension("samples", 800, 8000, 8))
    yield zoo("speech, GRU", "gru-open", Dimension("frames", 1, 200))
    yield from real("voice detector, Silero", "silero_vad_16k_op15", {"sr": 16000},
                    batch=Dimension("batch", 1, 8), sequence=576)  # fmt: skip
    yield zoo("detector, YOLOv8n's layers", "yolov8n-open", Dimension("pixels", 64, 320, 32))
    pixels = Dimension("pixels", 32, 320, 32)
    yield zoo("classifier, MobileNet v2", "mobilenet-v2-open", pixels)
    yield RangedModel("classifier of 8 bits, MobileNet v2",
                open_network("mobilenet-v2-open", pixels.high, folder),
                {pixels.name: pixels}, has_8_bits=True)  # fmt: skip
    yield zoo("detector that selects its boxes", "detector-open",
              Dimension("height", 64, 320, 32), Dimension("width", 64, 320, 32))  # fmt: skip
    if "ppocr4_rec" in shared:
        width = Dimension("p2o.DynamicDimension.1", 32, 320, 8)
        yield RangedModel("recogniser of text lines", shared["ppocr4_rec"],
                    {"p2o.DynamicDimension.0": 1, "x:2": 48, width.name: width})  # fmt: skip
    past = Dimension("past_seq_len", 0, 63)
    yield from real("decoder with a cache, GPT-2 tiny", "tr_genai_tiny-random-gpt2-fp32_past",
                    batch_size=1, seq_len=1, past_seq_len=past,
                    total_seq_len=past.size + 1)  # fmt: skip
