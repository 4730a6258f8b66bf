"""The operators that the native core runs, one theme per module.

Each is a dataclass whose fields are its attributes in the program file; its traits tell the
planner what it promises. `table.py` collects them; `schema.py` generates the schema of the file
format from them.
"""
