"""ActiveMQ as the backbone, over STOMP; only this package knows stomp.py, and loads it when it is used."""
