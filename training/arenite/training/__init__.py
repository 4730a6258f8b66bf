"""Training steps: the gradient of a model, written as standard ONNX.

The way through, one module an arrow::

    Program -> forward -> StepGraph -> loss -> backward (rules) -> optimiser -> STEP.onnx

`step` does it for a whole model. What comes out has no operator of ours: any runtime of ONNX runs
it. Its weights are states, inputs that an output replaces for the next run.
"""
