"""Rewrites: program to program, one per module."""
