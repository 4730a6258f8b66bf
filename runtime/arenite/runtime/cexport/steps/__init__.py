"""Writes the steps of a program as calls of kernels; importing this lists all writers."""
