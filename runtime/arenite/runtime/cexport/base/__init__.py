"""What all of an export builds on: text, numbers, places, options and errors."""
