"""Rewrites: graph to graph, one a module."""
