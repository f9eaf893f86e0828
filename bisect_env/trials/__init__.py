"""Trials: one process of a reproducer in an environment under a condition, and what it showed."""
