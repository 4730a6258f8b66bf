"""The files of an exported model, one kind a module."""
