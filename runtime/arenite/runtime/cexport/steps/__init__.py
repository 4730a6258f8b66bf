"""Writes the steps of a program as calls of kernels; importing this package lists all writers."""

from arenite.runtime.cexport.steps import (
    attention,
    cmsis_nn,
    convolution,
    counting,
    elementwise,
    hybrid,
    loops,
    movement,
    recurrent,
    reduction,
    scatter,
)

THEMES = (
    attention, cmsis_nn, convolution, counting, elementwise, hybrid, loops, movement, recurrent,
    reduction, scatter,
)  # fmt: skip
"""The modules that list writers."""
