"""What a cell's trials together show. Pure: records in, verdict out."""
