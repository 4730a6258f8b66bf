"""What the commands show to people: pure functions from results to rich renderables."""
