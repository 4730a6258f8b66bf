"""The modules that write steps; importing this lists all writers."""

from arenite.runtime.cexport.steps import (  # noqa: F401
    cmsis_nn,
    convolution,
    elementwise,
    movement,
    normalisation,
    pooling,
    recurrent,
    reduction,
)
