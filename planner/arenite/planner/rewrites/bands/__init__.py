"""Bands of rows: regions of a program run row by row instead of operator by operator.

`geometry` says which rows a step reads, `walk` in which order the rows of a region are made,
`expand` turns the order into ordinary steps and tensors.
"""
