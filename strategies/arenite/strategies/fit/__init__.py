"""Policies, which trade time for memory: one a file, and a table of them."""
