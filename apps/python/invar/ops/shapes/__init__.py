"""Arrays of other shapes, and new arrays."""
