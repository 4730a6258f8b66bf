"""Rewrites of the programs that our runtime runs: program to program, one per module."""
