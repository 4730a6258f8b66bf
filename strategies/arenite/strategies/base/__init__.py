"""Parts that several kinds of strategies share."""
