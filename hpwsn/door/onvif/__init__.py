"""The ONVIF door: the event service that clients of cameras use."""
