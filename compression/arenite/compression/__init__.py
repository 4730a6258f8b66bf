"""Deep Compression: prune, share and Huffman-code weights, retrain, evaluate.

One arrow per module::

    ONNX file -> onnx_model -> Layer -> pruning -> sharing -> coding -> Code

`recipe` compresses a whole model, `evaluate` judges the result, `retrain` trains pruned and shared
weights.

Source: Han, Mao and Dally, Deep Compression, ICLR 2016.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.compression.blocks import BLOCK_BITS, BLOCK_LENGTHS, BlockLayer, with_blocks
    from arenite.compression.coding import Code, code, decode, huffman_code, pack, unpack
    from arenite.compression.constants import with_constants
    from arenite.compression.dataset import Dataset, DatasetError, random_dataset, read_dataset
    from arenite.compression.errors import (
        CodedError,
        EvaluationError,
        NoLayerError,
        NonFiniteWeightsError,
    )
    from arenite.compression.evaluate import (
        Judge,
        Quality,
        QuantiserError,
        quantised_by_onnxruntime,
    )
    from arenite.compression.graph_rewrites import Narrowed, remove_channels
    from arenite.compression.onnx_model import Layer, LayerKind, OnnxModel, write_onnx
    from arenite.compression.pruning import (
        DENSITIES,
        Sensitivity,
        mask_by_density,
        mask_by_deviation,
        masks_by_budget,
        scan,
    )
    from arenite.compression.recipe import (
        Compressed,
        CompressionRecipe,
        LayerRecipe,
        LayerResult,
        compress,
    )
    from arenite.compression.retrain import (
        Distillation,
        FineTuned,
        PrunedModel,
        TrainingSchedule,
        TunedCodebooks,
        falling_densities,
        fine_tune,
        prune_gradually,
        rising_deviations,
        tune_codebooks,
        weights_of,
    )
    from arenite.compression.sharing import Shared, Start, bits_by_budget, share
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "BLOCK_BITS", "BLOCK_LENGTHS", "DENSITIES", "BlockLayer", "Code", "CodedError",
    "Compressed", "CompressionRecipe", "Dataset",
    "DatasetError", "Distillation", "EvaluationError", "FineTuned", "Judge", "Layer", "LayerKind",
    "LayerRecipe", "LayerResult", "Narrowed", "NoLayerError", "NonFiniteWeightsError", "OnnxModel",
    "PrunedModel", "Quality", "QuantiserError", "Sensitivity", "Shared", "Start",
    "TrainingSchedule", "TunedCodebooks", "bits_by_budget", "code", "compress", "decode",
    "falling_densities", "fine_tune", "huffman_code", "mask_by_density", "mask_by_deviation",
    "masks_by_budget", "pack", "prune_gradually", "quantised_by_onnxruntime", "random_dataset",
    "read_dataset", "remove_channels", "rising_deviations", "scan", "share", "tune_codebooks",
    "unpack", "weights_of", "with_blocks", "with_constants", "write_onnx",
]  # fmt: skip
