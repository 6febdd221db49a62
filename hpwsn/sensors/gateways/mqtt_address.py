"""Where an MQTT broker is and as whom to connect, and in words why a connection cannot be made.

The password and the trusted certificates are read at each connection, so that a new file needs no restart.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class MqttAddress:
    """The broker's URL, the user, and files with its password and with the certificates that are trusted."""

    url: str
    user: str = ""
    password_file: str = ""
    ca_file: str = ""

    @property
    def secure(self) -> bool:
        """Whether the connection has TLS."""
        return self.url.startswith("mqtts:")

    @property
    def place(self) -> tuple[str, int]:
        """Host and port; ValueError says what is wrong with the URL."""
        parts = urlsplit(self.url)
        if "@" in parts.netloc:
            raise ValueError("has a user; give sensors.mqtt_user and sensors.mqtt_password_file instead")
        if not parts.hostname or parts.path.strip("/") or parts.query:
            raise ValueError("is not of the form mqtt://host:port; correct it")
        try:
            port = parts.port
        except ValueError:
            raise ValueError("has a port that is not a number up to 65535; correct it") from None
        return parts.hostname, port or (8883 if self.secure else 1883)

    @property
    def words(self) -> str:
        """Host and port, for people."""
        return "{}:{}".format(*self.place)

    def password(self) -> str | None:
        """The password; OSError or UnicodeError if its file cannot be read."""
        return Path(self.password_file).read_text("utf-8").rstrip("\r\n") if self.password_file else None

    def tls_context(self) -> ssl.SSLContext:
        """How certificates are verified; OSError if those of the file cannot be used."""
        return ssl.create_default_context(cafile=self.ca_file or None)


def reason_of(error: Exception) -> str:
    """Why a connection failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}; see sensors.mqtt_ca_file"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
