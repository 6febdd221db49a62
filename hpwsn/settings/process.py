"""The settings of the node's process: port, name, data directory, monitoring and log."""

from dataclasses import dataclass

from hpwsn.settings.quantities import Boolean, Choice, Duration, Integer, OriginList, Share, Size, Text, Url
from hpwsn.settings.setting import ANY_HOST, MIB, setting


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The HTTP port for publishers, subscribers and operators."""

    host: str = setting(
        "127.0.0.1",
        Text("a host name or address", empty=False),
        "Listening address; 0.0.0.0 or :: means all.",
    )
    port: int = setting(8080, Integer(0, 65535), "Listening port; 0 means any free port.")
    public_url: str = setting(
        "",
        Url("an http or https URL, or empty for http://host:port, https with TLS"),
        "Base URL in endpoint references, for example that of a proxy.",
    )
    body_limit: int = setting(16 * MIB, Size(1024, 2**31), "Maximum request body.")
    depth_limit: int = setting(256, Integer(8, 256), "Maximum depth of elements in a request.")
    attribute_limit: int = setting(256, Integer(8, 100_000), "Maximum attributes per element.")
    message_limit: int = setting(10_000, Integer(1, 1_000_000), "Maximum messages per Notify.")
    request_timeout: float = setting(
        60.0, Duration(0.1), "Timeout for a request to arrive, and for the client to read the response."
    )
    connections: int = setting(10_000, Integer(1, 1_000_000), "Maximum open connections.")
    drain_timeout: float = setting(
        10.0, Duration(0), "Maximum wait for in-flight requests and deliveries at SIGTERM."
    )
    fast_lane: bool = setting(True, Boolean(), "Use the shorter code path for common requests.")
    cors_origins: tuple[str, ...] = setting(
        (),
        OriginList("a list of origins, such as https://maps.example.org, or *"),
        "Web pages of other origins that may use the JSON addresses (CORS).",
    )
    websocket_origins: tuple[str, ...] = setting(
        (),
        OriginList("a list of origins, such as https://maps.example.org, or *"),
        "Web pages of other origins that may open a WebSocket, and write.",
    )
    tls_certificate: str = setting(
        "", Text("a PEM file, or empty for plain HTTP"), "Server certificate with its chain."
    )
    tls_key: str = setting(
        "", Text("a PEM file, or empty if in `tls_certificate`"), "Unencrypted private key."
    )
    tls_client_ca: str = setting(
        "",
        Text("a PEM file, or empty for no client certificates"),
        "CAs of which clients must present a certificate.",
    )

    @property
    def scheme(self) -> str:
        """The URL scheme of the port."""
        return "https" if self.tls_certificate else "http"

    def base_url(self, port: int, hostname: str) -> str:
        """The base URL of the node; `hostname` is used if `host` means all addresses."""
        if self.public_url:
            return self.public_url.rstrip("/")
        return self.origin(hostname if self.host in ANY_HOST else self.host, port)

    def origin(self, host: str, port: int) -> str:
        """Scheme, host and port as the start of a URL; `host` is a name or an address."""
        return f"{self.scheme}://[{host}]:{port}" if ":" in host else f"{self.scheme}://{host}:{port}"


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The node's identity."""

    name: str = setting("", Text("text, or empty for the host's name"), "Node name, unique among all nodes.")
    cluster: str = setting("", Text("text, or empty for `default`"), "Cluster that the node joins.")


@dataclass(frozen=True, slots=True)
class DataSettings:
    """The node's state."""

    dir: str = setting(
        "hpwsn-data",
        Text("a directory", empty=False),
        "Data directory; created if missing.",
    )


@dataclass(frozen=True, slots=True)
class MonitoringSettings:
    """The events log and the thresholds of alerts."""

    events_kept: int = setting(
        5000, Integer(100, 1_000_000), "Events in the events log; older ones go first."
    )
    alert_after: float = setting(
        30.0,
        Duration(0, 86400),
        "How long a consumer must fail, or a threshold be exceeded, before an alert.",
    )
    alert_keep: float = setting(
        60.0, Duration(0, 86400), "How long an alert stays after its cause, so that it does not flap."
    )
    backlog: int = setting(
        10_000, Integer(1, 1_000_000_000), "Waiting notifications of one consumer that raise an alert."
    )
    queue_percent: int = setting(
        80, Integer(1, 100), "Share of a queue limit, or of the limit of dead letters, that raises an alert."
    )
    journal_percent: int = setting(90, Integer(1, 100), "Share of `journal.max_bytes` that raises an alert.")
    disk_percent: int = setting(
        95, Integer(1, 100), "Used share of the data directory's disk that raises an alert."
    )
    service_lag: int = setting(
        100_000, Integer(1, 1_000_000_000_000), "Unread events of one stream service that raise an alert."
    )
    cpu_percent: int = setting(
        95, Integer(1, 1000), "CPU time of the process, in percent of one core, that raises an alert."
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log on standard error."""

    level: str = setting(
        "info", Choice(choices=("debug", "info", "warning", "error")), "Minimum level of records."
    )
    format: str = setting("text", Choice(choices=("text", "json")), "Format of each line.")


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """Spans of the node's own work, by OpenTelemetry; the publisher's trace goes on without them."""

    enabled: bool = setting(False, Boolean(), "Make spans; requires `pip install 'hpwsn[tracing]'`.")
    otlp_url: str = setting(
        "http://127.0.0.1:4318/v1/traces",
        Url("an http or https URL"),
        "Address of the collector that gets the spans, by OTLP over HTTP.",
    )
    sample: float = setting(
        0.0, Share(), "Share of the publications without a traceparent for which the node begins a trace."
    )
