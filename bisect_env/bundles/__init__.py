"""Bundles: everything a matrix needs, in parts of a size, for a host without a network."""
