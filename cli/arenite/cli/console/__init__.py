"""Input and output of commands: results, files, streams, Ctrl-C."""
