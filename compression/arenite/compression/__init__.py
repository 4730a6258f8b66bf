"""Deep Compression: prune, share weights, Huffman-code; and what it costs.

The way through, one module an arrow::

    ONNX file -> onnx_model -> Layer -> prune -> share -> coding -> Code

`pipeline` does it for a whole model by a `Recipe`, `evaluate` and `sensitivity` judge the result,
`container` keeps coded weights by name, `training` retrains what was pruned and shared.

Source: Han, Mao and Dally, Deep Compression, ICLR 2016.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.compression.dataset import DatasetError, random_dataset, read_dataset
    from arenite.compression.evaluate import Judge, Quality
    from arenite.compression.int8 import quantised_by_onnxruntime
    from arenite.compression.onnx_model import OnnxModel, write_onnx
    from arenite.compression.pipeline import Compressed, LayerRecipe, LayerResult, Recipe, compress
    from arenite.compression.sensitivity import DENSITIES, Sensitivity, scan
    from arenite.compression.share import Start, bits_by_budget
    from arenite.compression.structured import Narrowed
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "dataset": "DatasetError random_dataset read_dataset",
            "evaluate": "Judge Quality",
            "int8": "quantised_by_onnxruntime",
            "onnx_model": "OnnxModel write_onnx",
            "pipeline": "Compressed LayerRecipe LayerResult Recipe compress",
            "sensitivity": "DENSITIES Sensitivity scan",
            "share": "Start bits_by_budget",
            "structured": "Narrowed",
        },
    )

__all__ = [
    "DENSITIES", "Compressed", "DatasetError", "Judge", "LayerRecipe", "LayerResult", "Narrowed",
    "OnnxModel", "Quality", "Recipe", "Sensitivity", "Start", "bits_by_budget", "compress",
    "quantised_by_onnxruntime", "random_dataset", "read_dataset", "scan", "write_onnx",
]  # fmt: skip
