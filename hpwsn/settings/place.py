"""Where something listens, and by what address it is reached."""

ANY_HOST = frozenset({"", "0.0.0.0", "::"})
"""Addresses to listen on that mean every one, and by which nobody is reached."""


def host_and_port(key: str, text: str) -> tuple[str, int]:
    """The two parts of `host:port`, the value of the setting `key`."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError(f"{key} is {text!r}, and must be host:port")
    return host.strip("[]"), int(port)
