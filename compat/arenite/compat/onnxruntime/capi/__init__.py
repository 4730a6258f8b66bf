"""The module of ONNX Runtime that has its exceptions."""
