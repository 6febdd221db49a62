"""The tables and figures of the CET paper, measured with the simulator."""
