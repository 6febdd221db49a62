"""The settings of a node as a process: its port, its name, its directory and its log."""

from dataclasses import dataclass

from hpwsn.settings.quantities import Choice, Flag, Seconds, Size, Text, Texts, Url, Whole
from hpwsn.settings.setting import ANY_HOST, MIB, setting


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The port that publishers, subscribers and operators use."""

    host: str = setting(
        "127.0.0.1",
        Text("a host name or address", empty=False),
        "Address to listen on; 0.0.0.0 or :: is every one.",
    )
    port: int = setting(8080, Whole(0, 65535), "Port to listen on; 0 takes a free one.")
    public_url: str = setting(
        "",
        Url("an http or https URL, or empty for http://host:port, https with TLS"),
        "Base of the addresses in endpoint references, where others reach the node by another one.",
    )
    body_limit: int = setting(16 * MIB, Size(1024, 2**31), "Largest request body.")
    depth_limit: int = setting(256, Whole(8, 256), "Most levels of elements in a request.")
    attribute_limit: int = setting(256, Whole(8, 100_000), "Most attributes on one element.")
    message_limit: int = setting(10_000, Whole(1, 1_000_000), "Most messages in one Notify.")
    request_timeout: float = setting(
        60.0, Seconds(0.1), "Time for a request to arrive whole, and for answers to be read."
    )
    connections: int = setting(10_000, Whole(1, 1_000_000), "Most connections open at once.")
    drain_timeout: float = setting(10.0, Seconds(0), "Time for what is under way to finish at SIGTERM.")
    fast_lane: bool = setting(
        True, Flag(), "Ordinary requests take a shorter way; the answers are the same without it."
    )
    websocket_origins: tuple[str, ...] = setting(
        (),
        Texts("a list of origins, such as https://maps.example.org, or *"),
        "Origins of web pages elsewhere that may follow topics by WebSocket; * is every one.",
    )
    tls_certificate: str = setting(
        "", Text("a PEM file, or empty for plain HTTP"), "Certificate, with its chain, that the port shows."
    )
    tls_key: str = setting(
        "", Text("a PEM file, or empty where tls_certificate has it"), "Key of the certificate, unencrypted."
    )
    tls_client_ca: str = setting(
        "",
        Text("a PEM file, or empty to ask nobody"),
        "Authorities; a client must show a certificate of one of them.",
    )

    @property
    def scheme(self) -> str:
        """What the port speaks."""
        return "https" if self.tls_certificate else "http"

    def base_url(self, port: int, hostname: str) -> str:
        """The base of the node's addresses; `hostname` stands for a host that means every address."""
        if self.public_url:
            return self.public_url.rstrip("/")
        return self.origin(hostname if self.host in ANY_HOST else self.host, port)

    def origin(self, host: str, port: int) -> str:
        """The start of an address of this port by the name or address `host`."""
        return f"{self.scheme}://[{host}]:{port}" if ":" in host else f"{self.scheme}://{host}:{port}"


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Who this node is among others."""

    name: str = setting(
        "", Text("text, or empty for the host's name"), "Name of the node, unique in its cluster."
    )
    cluster: str = setting(
        "", Text("text, or empty for `default`"), "Name of the cluster that the node belongs to."
    )


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Where the node keeps its state."""

    dir: str = setting(
        "hpwsn-data",
        Text("a directory", empty=False),
        "Directory of the journal, subscriptions and pull points; made if missing.",
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What the node writes to standard error."""

    level: str = setting(
        "info", Choice(choices=("debug", "info", "warning", "error")), "Least serious record written."
    )
    format: str = setting(
        "text", Choice(choices=("text", "json")), "One line of text, or one JSON object, a record."
    )
