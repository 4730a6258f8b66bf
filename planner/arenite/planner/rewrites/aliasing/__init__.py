"""Let tensors share storage.

This takes three passes. The first handles views, and results that overwrite an operand at its
last use; each takes over a whole storage of its own size, so it can only help. The second puts
parts, slices and concatenated inputs, inside the larger tensor; that extends the lifetime of the
larger one, so it is done only where the load falls. The third, for targets whose kernels are
known, lets results overlap the operands that they consume.
"""
