"""Options that several commands share, by theme."""
