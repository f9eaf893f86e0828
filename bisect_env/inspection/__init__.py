"""What a library has and does, read from its source: installed, in a wheel, or on an index."""
