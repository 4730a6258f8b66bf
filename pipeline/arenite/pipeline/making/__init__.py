"""A model to a plan, a program, a budget, another runtime."""
