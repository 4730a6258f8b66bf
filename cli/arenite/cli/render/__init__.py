"""Output for people: pure functions from results to rich renderables."""
