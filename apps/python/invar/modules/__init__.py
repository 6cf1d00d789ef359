"""Modules of torch made of compiled models: invar.convert() and what it writes."""
