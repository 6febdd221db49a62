"""Pictures of simulated runs and of their figures, as SVG and HTML."""
