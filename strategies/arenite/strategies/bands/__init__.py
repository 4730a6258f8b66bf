"""Bands of rows: parts of a program run some rows at a time instead of operator by operator.

`regions` finds the regions that can run in bands, `paths` the cheapest way through a program,
`search` the programs within a budget, `strips_search` those that also run in strips of columns,
and `memories_search` those over several memories. `expand` and `strips` write them as ordinary
steps.
"""
