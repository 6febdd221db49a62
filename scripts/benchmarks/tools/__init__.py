"""What benchmarks start: nodes, and the load that goes at them."""
