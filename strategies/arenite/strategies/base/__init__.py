"""What several kinds of strategies share; it knows none of them."""
