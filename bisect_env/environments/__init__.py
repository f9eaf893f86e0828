"""Locks and environments: what a cell asks for, resolved and built by uv, proved and shared."""
