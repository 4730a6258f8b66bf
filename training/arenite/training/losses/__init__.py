"""Losses: what a step lowers, a file each."""
