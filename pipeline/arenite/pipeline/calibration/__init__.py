"""What the work of a machine costs, measured."""
