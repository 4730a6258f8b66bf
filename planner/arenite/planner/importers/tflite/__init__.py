"""TFLite: the format is known in this package and nowhere else."""

from arenite.planner.importers.tflite.importer import TfliteModel, read_tflite_model
from arenite.planner.importers.tflite.reader import read_tflite

__all__ = ["TfliteModel", "read_tflite", "read_tflite_model"]
