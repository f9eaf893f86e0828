"""What people and machines read: tables, summaries, JSON, and everything known about one id."""
