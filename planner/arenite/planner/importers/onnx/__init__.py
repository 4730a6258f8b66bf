"""ONNX: the format is known in this package and nowhere else."""

from arenite.planner.importers.onnx.importer import read_onnx

__all__ = ["read_onnx"]
