"""Policies of the literature, to compare ours with.

They register by entry point `arenite.policies` in pyproject.toml, as those of other packages do;
nothing else imports them.
"""
