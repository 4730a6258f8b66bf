"""What all of the pipeline uses: readings, limits, observers, one search, errors."""
