"""Run models by their plan, in stock runtimes."""
