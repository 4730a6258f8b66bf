"""What to trade for memory: policies that change a program so that it fits a budget."""
