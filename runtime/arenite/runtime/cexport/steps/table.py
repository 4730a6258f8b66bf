"""The modules that write steps; importing this lists all writers."""

from arenite.runtime.cexport.steps import (  # noqa: F401
    convolution,
    elementwise,
    movement,
    normalisation,
    pooling,
    recurrent,
    reduction,
)
