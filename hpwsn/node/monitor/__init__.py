"""How a node watches itself: once a second it takes a sample, looks for alerts, and feeds the live stream."""
