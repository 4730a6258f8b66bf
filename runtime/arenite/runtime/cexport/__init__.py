"""Write a program as C source: a network without an interpreter, each tensor at its offset.

The kernels are C files under `kernels/`. What an exported model needs of them is copied into it.
"""
