"""How each operator is differentiated: one small function an operator, a file a family."""
