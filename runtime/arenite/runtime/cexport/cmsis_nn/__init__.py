"""CMSIS-NN as the kernels of exported C source, for whole operators of bytes.

The library is the user's own, 7.0.0 or later: nothing of it is exported. What it lacks is left to
our own kernels. Its working memory is planned, and nothing is promised of the order in which it
reads and writes, so that its results never reach into its operands.
"""
