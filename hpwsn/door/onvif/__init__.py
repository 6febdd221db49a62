"""The ONVIF event service: the operations that camera clients use, on the same broker."""
