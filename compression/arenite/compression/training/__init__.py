"""Retraining of compressed models in PyTorch: the extra `train`."""

from arenite.compression.training.codebook_tuning import (
    TunedCodebooks,
    cluster_gradients,
    tune_codebooks,
)
from arenite.compression.training.fine_tune import FineTuned, fine_tune
from arenite.compression.training.gradual import (
    PrunedModel,
    falling_densities,
    prune_gradually,
    rising_deviations,
)
from arenite.compression.training.onnx_module import TrainableOnnx, trainable
from arenite.compression.training.schedule import Distillation, Schedule

__all__ = [
    "Distillation",
    "FineTuned",
    "PrunedModel",
    "Schedule",
    "TrainableOnnx",
    "TunedCodebooks",
    "cluster_gradients",
    "falling_densities",
    "fine_tune",
    "prune_gradually",
    "rising_deviations",
    "trainable",
    "tune_codebooks",
]
