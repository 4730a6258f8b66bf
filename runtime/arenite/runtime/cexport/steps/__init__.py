"""Writes the steps of a program as calls of kernels, one theme per module."""
