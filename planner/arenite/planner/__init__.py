"""Read a model, derive what must be placed, check the plan and write it down.

The way through, one module an arrow::

    model file -> importers -> Graph -> rewrites -> liveness -> Problem
               -> a strategy -> Plan -> verify -> plan file
"""
