"""One self-contained HTML file: of a matrix, a bisection or a gate."""
