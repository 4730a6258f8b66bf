"""Schedules: the order and repetition of steps, and the tensors that are spilled."""
