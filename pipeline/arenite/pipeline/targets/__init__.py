"""Whose memory is planned, one target a file: the graph as written, or a runtime."""
