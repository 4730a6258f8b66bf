"""Writes the steps of a program as calls of kernels; importing this package lists all writers."""

from arenite.runtime.cexport.steps import (
    cmsis_nn,
    convolution,
    elementwise,
    hybrid,
    movement,
    recurrent,
    reduction,
)

THEMES = (cmsis_nn, convolution, elementwise, hybrid, movement, recurrent, reduction)
"""The modules that list writers."""
