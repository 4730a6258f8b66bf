"""Strategies that give each record a whole buffer, one record at a time."""
