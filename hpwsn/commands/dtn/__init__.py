"""The command `hpwsn dtn`: simulated delay-tolerant networks."""
