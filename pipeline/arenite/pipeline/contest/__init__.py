"""Engines that run a model, measured in turn."""
