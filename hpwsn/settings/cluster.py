"""The settings of what is between nodes: the message broker, the cluster, the admin node and the links."""

from dataclasses import dataclass

from hpwsn.settings.quantities import Flag, Seconds, Size, Text, Texts, Url, Whole
from hpwsn.settings.setting import ANY_HOST, MIB, host_and_port, setting


@dataclass(frozen=True, slots=True)
class BackboneSettings:
    """What carries notifications between the nodes of a cluster."""

    url: str = setting(
        "",
        Url("a stomp:// URL, or empty for embedded", schemes=("stomp",)),
        "The message broker, as stomp://user:password@host:61613; several hosts with commas.",
    )
    password: str = setting("", Text(), "Password for it, where the URL holds none.", secret=True)
    password_file: str = setting("", Text("a file"), "File that holds the password instead.")
    persistent: bool = setting(
        True, Flag(), "Whether what waits in the message broker survives the end of its process."
    )
    batch: int = setting(256, Whole(1, 10_000), "Most notifications in one message to it.")
    prefetch: int = setting(64, Whole(1, 10_000), "Messages that it sends ahead of their acknowledgement.")
    heartbeat: float = setting(
        5.0,
        Seconds(0.1, 3600),
        "Time between heartbeats; after two and a half without one it counts as away.",
    )
    spool_limit: int = setting(
        1_000_000, Whole(0, 1_000_000_000), "Most notifications kept for it while it is away."
    )
    spool_bytes: int = setting(256 * MIB, Size(0), "Most bytes kept for it while it is away.")
    peers: tuple[str, ...] = setting(
        (),
        Texts("a list of topics"),
        "Topics that, with all below them, are shared with JMS, STOMP and MQTT applications there.",
    )


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How the node joins its cluster; the admin node reads these as well."""

    admin: str = setting(
        "",
        Url("an http or https URL, or empty for a node alone"),
        "Address of the admin node, for a node in a cluster.",
    )
    secret: str = setting("", Text(), "Secret shared with the admin node and the other nodes.", secret=True)
    secret_file: str = setting("", Text("a file"), "File that holds the secret instead.")
    ca_file: str = setting(
        "",
        Text("a PEM file, or empty for the system's"),
        "Authorities that https addresses of the admin node and of other nodes are checked against.",
    )
    url: str = setting(
        "",
        Url("an http or https URL, or empty for the one of its endpoint references"),
        "Where other nodes and the admin node reach this node's port, if by another address than clients.",
    )
    heartbeat: float = setting(
        2.0, Seconds(0.05, 3600), "Pause between two heartbeats; nodes follow the admin node's."
    )
    missed: int = setting(3, Whole(2, 1000), "Heartbeats missed until a node counts as dead.")
    start_wait: float = setting(
        5.0,
        Seconds(0, 3600),
        "Time for the admin node to answer at the start, before the node goes on.",
    )
    clock_window: float = setting(
        300.0, Seconds(1, 86400), "Most seconds that the clocks of two hosts may differ."
    )
    forward_timeout: float = setting(
        120.0, Seconds(0.1, 3600), "Time for another node to answer a request that is passed on to it."
    )


@dataclass(frozen=True, slots=True)
class AdminSettings:
    """The admin node, `hpwsn admin`."""

    host: str = setting(
        "127.0.0.1",
        Text("a host name or address", empty=False),
        "Address to listen on; 0.0.0.0 or :: is every one.",
    )
    port: int = setting(8070, Whole(0, 65535), "Port to listen on; 0 takes a free one.")
    dir: str = setting(
        "hpwsn-admin-data", Text("a directory", empty=False), "Directory of its state; made if missing."
    )
    limit: int = setting(10_000, Whole(1, 1_000_000), "Most nodes that are registered.")
    forget: float = setting(86_400.0, Seconds(0), "How long a node that died or left stays listed.")


@dataclass(frozen=True, slots=True)
class RoutingSettings:
    """How nodes carry notifications to each other; save `originals` only where `cluster.admin` is set."""

    host: str = setting(
        "",
        Text("a host name or address, or empty for `server.host`"),
        "Address for links to other nodes, which reach this one by it unless it means every address.",
    )
    port: int = setting(0, Whole(0, 65535), "Port for them, by UDP and TCP; 0 takes a free one.")
    public: str = setting(
        "",
        Text("host:port, or empty for the two above"),
        "Where other nodes reach this one's links, if by another address.",
    )
    fragment_size: int = setting(
        8000, Size(512, 8191), "Most bytes of a datagram; larger notifications are split over several."
    )
    buffer: int = setting(4 * MIB, Size(64 * 1024, 1024 * MIB), "Buffer asked of the system for datagrams.")
    queue_bytes: int = setting(64 * MIB, Size(MIB), "Most bytes that wait for one other node.")
    reassembly_timeout: float = setting(
        5.0, Seconds(0.1, 3600), "How long the next piece of a notification is waited for."
    )
    reassembly_bytes: int = setting(
        64 * MIB, Size(MIB), "Most bytes of incomplete notifications; the oldest go first."
    )
    reassembly_messages: int = setting(
        1024, Whole(1, 1_000_000), "Most incomplete notifications; the oldest go first."
    )
    unacknowledged: int = setting(
        10_000,
        Whole(1, 1_000_000),
        "Most reliable notifications that others have not confirmed; past it, publishers get a 503.",
    )
    unacknowledged_bytes: int = setting(64 * MIB, Size(MIB), "Most bytes of these.")
    resend_after: float = setting(
        5.0, Seconds(0.1, 3600), "When what is not confirmed is sent again; doubled each time."
    )
    dead_grace: float = setting(
        60.0, Seconds(0), "How long reliable notifications are kept for a node that is dead or gone."
    )
    originals: tuple[str, ...] = setting(
        (),
        Texts("a list of host:port"),
        "Nodes of the original: they get what is published here in its form by UDP, and may send the same.",
    )
    original_port: int = setting(
        0, Whole(0, 65535), "UDP port for them, at `host`; 0 takes a free one. Nothing proves who sends."
    )

    def original_addresses(self) -> list[tuple[str, int]]:
        """Where the nodes of the original are."""
        return [host_and_port("routing.originals", text) for text in self.originals]

    def announced(self, port: int, hostname: str) -> tuple[str, int]:
        """Where others reach a node whose links have this port; `hostname` stands for every address."""
        if self.public:
            return host_and_port("routing.public", self.public)
        return (hostname if self.host in ANY_HOST else self.host), port
