"""ActiveMQ as the backbone, over STOMP; the only package that uses stomp.py, which is imported on demand."""
