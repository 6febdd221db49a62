"""A checked definition as a graph of operators, and its drawing. Pure."""
