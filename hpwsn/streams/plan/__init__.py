"""A checked definition as a graph of operators, and a diagram of it. Pure."""
