"""What the user reads and what is written: results, files, the log, Ctrl-C."""
