"""Writes the steps of a program as calls of kernels; importing this lists all writers."""

from arenite.runtime.cexport.steps import (  # noqa: F401
    cmsis_nn,
    convolution,
    elementwise,
    movement,
    recurrent,
    reduction,
)
