"""The comparison as files: the page, tables for other programs, a trace."""
