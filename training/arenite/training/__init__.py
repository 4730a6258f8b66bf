"""Training steps: the gradient of a model, written as standard ONNX.

The way through, one module an arrow::

    Program -> forward -> StepGraph -> loss -> backward (rules) -> optimiser -> STEP.onnx

`step` does it for a whole model. What comes out has no operator of ours: any runtime of ONNX runs
it. Its weights are states, inputs that an output replaces for the next run.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.training.forward import Codebooks, codebook_name
    from arenite.training.prepare import program_for_training, read_for_training
    from arenite.training.runner import (
        Batches,
        StepEngine,
        StepInputs,
        StepRunner,
        fitted_feeds,
        restore,
        stock_engine,
    )
    from arenite.training.step import Masks, TrainingRecipe, TrainingStep, make_step
    from arenite.training.writing import write_step
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "forward": "Codebooks codebook_name",
            "prepare": "program_for_training read_for_training",
            "runner": "Batches StepEngine StepInputs StepRunner fitted_feeds restore stock_engine",
            "step": "Masks TrainingRecipe TrainingStep make_step",
            "writing": "write_step",
        },
    )

__all__ = [
    "Batches", "Codebooks", "Masks", "StepEngine", "StepInputs", "StepRunner", "TrainingRecipe",
    "TrainingStep", "codebook_name", "fitted_feeds", "make_step", "program_for_training",
    "read_for_training", "restore", "stock_engine", "write_step",
]  # fmt: skip
