"""Run a model with every tensor at its planned offset."""
