"""SQLite: every trial with its evidence; resumable, safe against kill -9."""
