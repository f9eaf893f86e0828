"""Matrix files: read, checked, and expanded to cells. Pure, except for reading the file."""
