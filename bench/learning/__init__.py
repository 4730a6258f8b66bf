"""Training steps beside PyTorch: their gradients, and what they learn."""
