"""Operators written as simpler ones, which have rules: a file a family."""
