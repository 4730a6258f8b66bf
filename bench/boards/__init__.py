"""Emulated microcontroller boards: C source is compiled for them, run in QEMU, and measured.

`board` lists them, `build` makes a program of a model's C source, `run` runs it and reads what
it reports, `sections` reads sizes out of the program. The board's own code, written in C, is in
`c/`: start-up, linker scripts, and a `main` that feeds the model and looks after it.
"""
