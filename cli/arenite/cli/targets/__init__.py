"""Whose memory is planned, one target a file."""
