"""Find which environment change broke multi-threaded PyTorch training.

The package is layered; each layer imports only from those before it::

    errors -> matrix -> environments -> trials -> verdicts -> store -> engine -> report -> cli

``matrix``, ``verdicts`` and the parsing halves of the others are pure. Processes, the network and the disk are
touched in ``environments`` (uv), ``trials`` (reproducers), ``store`` (SQLite) and ``engine`` (which drives them).
"""

__version__ = "0.1.0"
