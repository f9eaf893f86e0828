"""What to test next, and when it is sure: pure, seeded, ask and tell."""
