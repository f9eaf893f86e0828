"""The one engine: locks, environments, trials and verdicts for matrix, bisect, gate and explain."""
