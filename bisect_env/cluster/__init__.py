"""Trials on the nodes of a cluster: what a job is told, what it does there, and what it leaves for whoever sent it."""
