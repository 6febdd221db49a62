"""`hpwsn sensors`: physical and virtual sensors of a node, their readings, and simulated networks."""
