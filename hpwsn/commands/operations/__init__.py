"""Commands that show and change what a running node has: resources, dead letters, figures."""
