"""The command line ``bisect-env``."""
