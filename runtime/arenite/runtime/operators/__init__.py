"""The operators that the native core runs, one theme a module.

Each is a dataclass of what the program file states of it, with the traits that the planner asks
for. `table.py` collects them; `schema.py` writes the file format's schema from them.
"""
