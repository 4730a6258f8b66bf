"""Bands of rows: regions of a program run row by row instead of operator by operator.

`geometry` says which rows a step reads, `regions` what runs in bands and in which turns,
`expand` turns these into ordinary steps and tensors. Strategies choose the regions, and find
their turns.
"""
