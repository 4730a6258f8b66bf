"""Classes of other runtimes, run by Arenite: programs change one import.

    >>> from arenite.compat import onnxruntime
    >>> session = onnxruntime.InferenceSession("model.onnx")

    >>> from arenite.compat.tflite import Interpreter
    >>> interpreter = Interpreter(model_path="model.tflite")

A model is built when it is first run, and kept in a folder (`arenite.compat.cache`).
"""
