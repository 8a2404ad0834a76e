"""Loads nothing: what counts is what its compilers need."""
