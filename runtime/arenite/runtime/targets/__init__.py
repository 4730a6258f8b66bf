"""Stock runtimes that obey our plan: TensorFlow Lite Micro, LiteRT, ONNX Runtime."""
