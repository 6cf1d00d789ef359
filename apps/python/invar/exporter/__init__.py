"""Causal models of transformers, exported for `invar export --with-transformers`."""
