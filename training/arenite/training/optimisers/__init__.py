"""Optimisers: how a gradient changes a weight, a file each."""
