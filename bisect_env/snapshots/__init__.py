"""What an environment is, read from whatever people have in hand, and how two of them differ."""
