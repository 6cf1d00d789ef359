"""Short exchanges: what one says, and what the model answers."""
