"""The operators that the native core runs, one theme per module.

Each is a dataclass: its fields are its attributes in the program file, its traits state what the
planner may rely on. `schema.py` collects them and generates the schema of the file from them.
"""
