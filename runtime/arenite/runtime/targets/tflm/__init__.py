"""TensorFlow Lite Micro: plans that an unmodified interpreter obeys, measured in it."""
