"""The kinds of processors that CMSIS-NN has kernels for; each needs working memory of its own."""

from enum import StrEnum


class Extension(StrEnum):
    """What a processor computes several bytes at once with."""

    NONE = "none"
    DSP = "dsp"
    MVE = "mve"
