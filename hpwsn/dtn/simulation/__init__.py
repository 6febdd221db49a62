"""The simulator of CET and of the protocols that it is compared with."""
