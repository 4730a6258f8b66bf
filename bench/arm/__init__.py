"""Instructions of an inference on emulated ARM processors."""
