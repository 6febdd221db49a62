"""The settings of connections between nodes: message broker, cluster, admin node and links."""

from dataclasses import dataclass

from hpwsn.settings.quantities import Boolean, Duration, Integer, Size, Text, TextList, Url
from hpwsn.settings.setting import ANY_HOST, MIB, host_and_port, setting


@dataclass(frozen=True, slots=True)
class BackboneSettings:
    """The ActiveMQ broker that accepted notifications pass through."""

    url: str = setting(
        "",
        Url("a stomp:// URL, or empty for embedded", schemes=("stomp",)),
        "ActiveMQ, as stomp://user:password@host:61613; separate several hosts by commas.",
    )
    password: str = setting("", Text(), "ActiveMQ password, if not in the URL.", secret=True)
    password_file: str = setting("", Text("a file"), "File with the ActiveMQ password.")
    persistent: bool = setting(
        True, Boolean(), "Send persistent messages, which survive a restart of ActiveMQ."
    )
    batch: int = setting(256, Integer(1, 10_000), "Maximum notifications per ActiveMQ message.")
    prefetch: int = setting(64, Integer(1, 10_000), "Maximum unacknowledged messages from ActiveMQ.")
    heartbeat: float = setting(
        5.0,
        Duration(0.1, 3600),
        "Heartbeat interval; the connection is lost after 2.5 intervals of silence.",
    )
    spool_limit: int = setting(
        1_000_000, Integer(0, 1_000_000_000), "Maximum notifications spooled while ActiveMQ is unavailable."
    )
    spool_bytes: int = setting(256 * MIB, Size(0), "Maximum bytes spooled while ActiveMQ is unavailable.")
    peers: tuple[str, ...] = setting(
        (),
        TextList("a list of topics"),
        "Subtrees of topics shared with JMS, STOMP, MQTT and AMQP applications.",
    )


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Joining a cluster; the admin node reads these settings too."""

    admin: str = setting(
        "",
        Url("an http or https URL, or empty for a single node"),
        "Address of the admin node.",
    )
    secret: str = setting("", Text(), "Secret shared by all nodes and the admin node.", secret=True)
    secret_file: str = setting("", Text("a file"), "File with the shared secret.")
    ca_file: str = setting(
        "",
        Text("a PEM file, or empty for the system's"),
        "CA certificates for the admin node and other nodes.",
    )
    url: str = setting(
        "",
        Url("an http or https URL, or empty for the base of its endpoint references"),
        "This node's address for other nodes and the admin node.",
    )
    heartbeat: float = setting(
        2.0, Duration(0.05, 3600), "Heartbeat interval; the admin node's value applies."
    )
    missed: int = setting(
        3, Integer(2, 1000), "Missed heartbeats after which a node is dead; the admin node's value applies."
    )
    start_wait: float = setting(
        5.0,
        Duration(0, 3600),
        "Maximum wait for the admin node at startup.",
    )
    clock_window: float = setting(300.0, Duration(1, 86400), "Maximum clock difference between two hosts.")
    forward_timeout: float = setting(
        120.0, Duration(0.1, 3600), "Response timeout for a request forwarded to another node."
    )


@dataclass(frozen=True, slots=True)
class AdminSettings:
    """The admin node, `hpwsn admin`."""

    host: str = setting(
        "127.0.0.1",
        Text("a host name or address", empty=False),
        "Listening address; 0.0.0.0 or :: means all.",
    )
    port: int = setting(8070, Integer(0, 65535), "Listening port; 0 means any free port.")
    dir: str = setting(
        "hpwsn-admin-data", Text("a directory", empty=False), "State directory; created if missing."
    )
    limit: int = setting(10_000, Integer(1, 1_000_000), "Maximum registered nodes.")
    forget: float = setting(86_400.0, Duration(0), "How long a dead or stopped node stays listed.")


@dataclass(frozen=True, slots=True)
class RoutingSettings:
    """Links between nodes; all but `originals` and `original_port` require `cluster.admin`."""

    host: str = setting(
        "",
        Text("a host name or address, or empty for `server.host`"),
        "Listening address for links; announced to other nodes unless it means all addresses.",
    )
    port: int = setting(0, Integer(0, 65535), "UDP and TCP port for links; 0 means any free port.")
    public: str = setting(
        "",
        Text("host:port, or empty for `host` and `port`"),
        "Address of the links announced to other nodes, if different.",
    )
    fragment_size: int = setting(
        8000, Size(512, 8191), "Maximum datagram size; larger notifications are fragmented."
    )
    buffer: int = setting(4 * MIB, Size(64 * 1024, 1024 * MIB), "Requested socket buffer for datagrams.")
    queue_bytes: int = setting(
        64 * MIB, Size(MIB), "Maximum bytes queued per node; never less than twice `server.body_limit`."
    )
    reassembly_timeout: float = setting(
        5.0, Duration(0.1, 3600), "Maximum wait for the next fragment of a notification."
    )
    reassembly_bytes: int = setting(
        64 * MIB, Size(MIB), "Maximum bytes of incomplete notifications; the oldest are dropped first."
    )
    reassembly_messages: int = setting(
        1024, Integer(1, 1_000_000), "Maximum incomplete notifications; the oldest are dropped first."
    )
    unacknowledged: int = setting(
        10_000,
        Integer(1, 1_000_000),
        "Maximum unacknowledged reliable notifications, beyond which publishers get 503.",
    )
    unacknowledged_bytes: int = setting(
        64 * MIB,
        Size(MIB),
        "Maximum bytes of unacknowledged reliable notifications; never less than twice `server.body_limit`.",
    )
    resend_after: float = setting(
        5.0,
        Duration(0.1, 3600),
        "Delay before the first resend; it doubles each time.",
    )
    dead_grace: float = setting(
        60.0, Duration(0), "How long reliable notifications are kept for a dead or stopped node."
    )
    originals: tuple[str, ...] = setting(
        (),
        TextList("a list of host:port"),
        "Nodes of the original HPwsn with which publications are exchanged over UDP.",
    )
    original_port: int = setting(
        0,
        Integer(0, 65535),
        "UDP port for `originals`; 0 means any free port. Senders are not authenticated.",
    )

    def original_addresses(self) -> list[tuple[str, int]]:
        """The addresses of the nodes of the original HPwsn; ValueError if one is not host:port."""
        return [host_and_port("routing.originals", text) for text in self.originals]

    def announced(self, port: int, hostname: str) -> tuple[str, int]:
        """The address of the links for other nodes; `hostname` is used if `host` means all addresses."""
        if self.public:
            return host_and_port("routing.public", self.public)
        return (hostname if self.host in ANY_HOST else self.host), port
