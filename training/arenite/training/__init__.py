"""Training steps: gradients and updates of a model as standard ONNX.

One arrow per module::

    Program -> forward -> StepGraph -> loss -> backward (rules) -> optimiser -> STEP.onnx

`step` builds the whole model. It has standard operators only, so any runtime of ONNX runs it. Its
weights are states: inputs that an output replaces for the next run.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.training.errors import (
        BatchError,
        MaskError,
        NotDifferentiableError,
        NothingToTrainError,
        TrainingError,
        UnfitLossError,
    )
    from arenite.training.files import program_for_training, read_for_training, write_step
    from arenite.training.forward import Codebooks, SharedWeights, codebook_name
    from arenite.training.losses import DistillationLoss
    from arenite.training.runner import (
        Batches,
        StateFileError,
        StepEngine,
        StepInputError,
        StepInputs,
        StepRunner,
        fitted_feeds,
        restore,
        stock_engine,
    )
    from arenite.training.step import Masks, TrainingRecipe, TrainingStep, make_step
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "BatchError", "Batches", "Codebooks", "DistillationLoss", "MaskError", "Masks",
    "NotDifferentiableError", "NothingToTrainError", "SharedWeights", "StateFileError",
    "StepEngine", "StepInputError", "StepInputs", "StepRunner", "TrainingError", "TrainingRecipe",
    "TrainingStep", "UnfitLossError", "codebook_name", "fitted_feeds", "make_step",
    "program_for_training", "read_for_training", "restore", "stock_engine", "write_step",
]  # fmt: skip
