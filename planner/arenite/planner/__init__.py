"""Read a model, derive what must be placed, check the plan and write it down.

The way through, one module an arrow::

    model file -> importers -> Program -> rewrites -> derive -> Problem
               -> a strategy -> Plan -> verify -> plan file
"""
