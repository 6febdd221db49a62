"""Every setting of a node: its name, its default, what it is for and what it may be.

One frozen `Config` of one frozen section each; the loader (hpwsn.config) builds it, nothing changes it. The
help and the kind of each field are its metadata, from which the checks, the messages and
docs/configuration.md are made. Pure: no file, environment, clock or host name.
"""

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any

from hpwsn.quantities import Choice, Flag, Kind, Seconds, Size, Text, Texts, Url, Whole

MIB = 1024**2
ANY_HOST = frozenset({"", "0.0.0.0", "::"})
"""Addresses to listen on that mean every one, and by which nobody is reached."""


def setting(default: Any, kind: Kind, about: str, secret: bool = False) -> Any:
    """A dataclass field that carries its kind and help."""
    return field(default=default, metadata={"kind": kind, "about": about, "secret": secret})


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
class TopicsSettings:
    """The topic tree."""

    url: str = setting(
        "",
        Text("a TOML file, an ldap:// or ldaps:// URL, or empty for open topics"),
        "The tree; open topics appear as they are used.",
    )
    on_remove: str = setting(
        "keep",
        Choice(choices=("keep", "end")),
        "What becomes of subscriptions whose topics are all removed: they wait for them to be back, or end.",
    )
    bind_dn: str = setting("", Text("a DN, or empty for anonymous"), "Who the node is for the LDAP server.")
    password_file: str = setting("", Text("a file"), "File that holds the password of `bind_dn`.")
    start_tls: bool = setting(False, Flag(), "Secure an ldap:// connection with StartTLS.")
    ca_file: str = setting(
        "",
        Text("a file, or empty for the system's"),
        "Certificates that the LDAP server's is checked against.",
    )
    timeout: float = setting(10.0, Seconds(0.1, 3600), "Time for the LDAP server to answer.")
    start_wait: float = setting(
        5.0, Seconds(0, 3600), "Time for it to answer at the start, before the topics last saved are used."
    )
    page_size: int = setting(1000, Whole(1, 100_000), "Most entries that the LDAP server sends at once.")
    poll: float = setting(
        5.0, Seconds(0.1, 86400), "Pause between two readings of an LDAP server that reports no changes."
    )
    retry_max: float = setting(30.0, Seconds(0.1, 3600), "Longest pause before the next try to reach it.")
    simple_subtree: bool = setting(True, Flag(), "A Simple topic expression also covers the topics below it.")
    open_limit: int = setting(1_000_000, Whole(1, 100_000_000), "Most topics in an open tree.")


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """The log of accepted notifications."""

    durability: str = setting(
        "commit",
        Choice(choices=("none", "commit", "fsync")),
        "What an accepted notification survives: nothing, the end of the process, or the end of the machine.",
    )
    id_window: float = setting(
        600.0, Seconds(0), "How long a MessageId is remembered, to be accepted only once."
    )
    retention_age: float = setting(86400.0, Seconds(0), "How long notifications are kept for late readers.")
    retention_bytes: int = setting(
        1024 * MIB, Size(MIB), "Most bytes of notifications kept for late readers."
    )
    reserve: int = setting(
        16 * MIB,
        Size(0, 2**40),
        "Room on the disk kept for cursors and removals when all else is full; an eighth of a small disk.",
    )
    max_bytes: int = setting(
        0, Size(0), "Largest size of the journal's file, past which publishers get a 503; 0 is the disk's."
    )
    waiting_limit: int = setting(
        64 * MIB, Size(MIB), "Most bytes waiting to be written; past it, publishers are told to come back."
    )


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """How notifications are pushed to consumers."""

    batch: int = setting(64, Whole(1, 10_000), "Most notifications in one Notify.")
    window: int = setting(1024, Whole(1, 1_000_000), "Most offsets read ahead for one subscription.")
    cache_bytes: int = setting(
        64 * MIB, Size(0), "Memory for recent notifications, so that few are read from disk."
    )
    connections_per_host: int = setting(32, Whole(1, 10_000), "Most connections to one consumer host.")
    connect_timeout: float = setting(10.0, Seconds(0.05), "Time for a consumer to take the connection.")
    response_timeout: float = setting(30.0, Seconds(0.05), "Time for a consumer to answer.")
    retry_first: float = setting(
        0.5, Seconds(0.001), "Pause before the first retry; each next one doubles, jittered."
    )
    retry_max: float = setting(60.0, Seconds(0.001), "Longest pause between retries.")
    retry_for: float = setting(
        86400.0, Seconds(0), "How long a delivery is retried, before it is a dead letter."
    )
    max_queue: int = setting(
        1_000_000,
        Whole(1, 1_000_000_000),
        "Most notifications waiting for one subscription that sets no limit.",
    )
    overflow: str = setting(
        "dead-letter",
        Choice(choices=("drop-oldest", "reject", "dead-letter")),
        "What happens past it: the oldest are lost or set aside, or publishers are refused.",
    )
    raw_only: bool = setting(
        False, Flag(), "Push payloads alone, never in a Notify: subscribers must ask for UseRaw."
    )
    on_gone: str = setting(
        "keep", Choice(choices=("keep", "end")), "Whether a consumer that answers 410 ends its subscription."
    )


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """Retries by what went wrong; 0 takes the value of `delivery`, and any number of attempts."""

    refused_first: float = setting(
        0.0, Seconds(0), "First pause where no connection can be had, or one is lost."
    )
    refused_max: float = setting(0.0, Seconds(0), "Longest pause there.")
    refused_attempts: int = setting(0, Whole(0, 1_000_000), "Most attempts there.")
    timeout_first: float = setting(0.0, Seconds(0), "First pause where no answer came in time.")
    timeout_max: float = setting(0.0, Seconds(0), "Longest pause there.")
    timeout_attempts: int = setting(0, Whole(0, 1_000_000), "Most attempts there.")
    client_error_first: float = setting(0.0, Seconds(0), "First pause after a 4xx.")
    client_error_max: float = setting(600.0, Seconds(0), "Longest pause there.")
    client_error_attempts: int = setting(0, Whole(0, 1_000_000), "Most attempts there.")
    server_error_first: float = setting(0.0, Seconds(0), "First pause after a 5xx.")
    server_error_max: float = setting(0.0, Seconds(0), "Longest pause there.")
    server_error_attempts: int = setting(0, Whole(0, 1_000_000), "Most attempts there.")


@dataclass(frozen=True, slots=True)
class DeadLettersSettings:
    """Notifications that could not be delivered."""

    age: float = setting(7 * 86400.0, Seconds(0), "How long they are kept.")
    limit: int = setting(1_000_000, Whole(0, 1_000_000_000), "Most that are kept; the oldest go first.")


@dataclass(frozen=True, slots=True)
class SubscriptionsSettings:
    """Bounds on subscriptions."""

    limit: int = setting(1_000_000, Whole(1, 100_000_000), "Most subscriptions at once.")
    grace: float = setting(60.0, Seconds(0), "How long after its end a subscription can still be renewed.")
    max_lifetime: float = setting(0.0, Seconds(0), "Longest lifetime that can be asked for; 0 is unlimited.")


@dataclass(frozen=True, slots=True)
class MatchingSettings:
    """Content filters."""

    compiled: str = setting(
        "auto",
        Choice(choices=("auto", "never")),
        "Whether many predicates are matched by compiled code: auto where numba is installed, or never.",
    )


@dataclass(frozen=True, slots=True)
class PullPointsSettings:
    """Bounds on pull points."""

    limit: int = setting(100_000, Whole(1, 10_000_000), "Most pull points at once.")
    max_messages: int = setting(1000, Whole(1, 100_000), "Most notifications in one GetMessages response.")
    queue_limit: int = setting(
        1_000_000,
        Whole(1, 1_000_000_000),
        "Most notifications waiting in one pull point; the oldest go first.",
    )
    confirm_after: float = setting(
        0.0,
        Seconds(0),
        "When a batch that was handed out counts as received without another call; 0 is never.",
    )


@dataclass(frozen=True, slots=True)
class OnvifSettings:
    """The ONVIF door."""

    lifetime: float = setting(
        3600.0,
        Seconds(1),
        "Lifetime of a pull point subscription that asks for none.",
    )
    max_timeout: float = setting(600.0, Seconds(0), "Longest wait that a PullMessages may ask for.")
    max_messages: int = setting(
        4096,
        Whole(1, 1_000_000),
        "Most messages that a PullMessages may ask for.",
    )
    waiting_limit: int = setting(1000, Whole(0, 1_000_000), "Most PullMessages that wait at once.")
    users_file: str = setting(
        "",
        Text("a file of lines name:password, or empty for no check"),
        "Who may use the ONVIF addresses, by a UsernameToken.",
    )
    token_window: float = setting(300.0, Seconds(1), "How far the time in a UsernameToken may be from ours.")


@dataclass(frozen=True, slots=True)
class RegistrationsSettings:
    """Publishers that register, and those that publish on demand."""

    required: bool = setting(False, Flag(), "Only registered publishers may publish, at every door.")
    limit: int = setting(10_000, Whole(1, 1_000_000), "Most registrations at once.")
    topics_limit: int = setting(1000, Whole(1, 100_000), "Most topics in one registration.")
    max_lifetime: float = setting(0.0, Seconds(0), "Longest lifetime that can be asked for; 0 is unlimited.")
    lifetime: float = setting(
        600.0,
        Seconds(1),
        "Lifetime of the node's subscriptions at publishers on demand; they are renewed at half of it.",
    )
    linger: float = setting(
        1.0, Seconds(0), "How long after its last interest goes a publisher on demand is paused."
    )


@dataclass(frozen=True, slots=True)
class StreamsSettings:
    """Stream services that jobs register."""

    limit: int = setting(1000, Whole(1, 100_000), "Most services known at once.")
    silent_after: float = setting(
        15.0, Seconds(1), "Time without a heartbeat after which a service counts as silent."
    )
    forget_after: float = setting(
        7 * 86400.0, Seconds(0), "Time after which a silent or stopped service is forgotten; 0 is never."
    )


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

    admin: str = setting("", Url("an http or https URL, or empty for a node alone"), "The admin node.")
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


def _host_and_port(key: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError(f"{key} is {text!r}, and must be host:port")
    return host.strip("[]"), int(port)


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
        return [_host_and_port("routing.originals", text) for text in self.originals]

    def announced(self, port: int, hostname: str) -> tuple[str, int]:
        """Where others reach a node whose links have this port; `hostname` stands for every address."""
        if self.public:
            return _host_and_port("routing.public", self.public)
        return (hostname if self.host in ANY_HOST else self.host), port


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What the node writes to standard error."""

    level: str = setting(
        "info", Choice(choices=("debug", "info", "warning", "error")), "Least serious record written."
    )
    format: str = setting(
        "text", Choice(choices=("text", "json")), "One line of text, or one JSON object, a record."
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration of one node."""

    server: ServerSettings = field(default_factory=ServerSettings)
    node: NodeSettings = field(default_factory=NodeSettings)
    data: DataSettings = field(default_factory=DataSettings)
    topics: TopicsSettings = field(default_factory=TopicsSettings)
    journal: JournalSettings = field(default_factory=JournalSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    retry: RetrySettings = field(default_factory=RetrySettings)
    dead_letters: DeadLettersSettings = field(default_factory=DeadLettersSettings)
    subscriptions: SubscriptionsSettings = field(default_factory=SubscriptionsSettings)
    matching: MatchingSettings = field(default_factory=MatchingSettings)
    pull_points: PullPointsSettings = field(default_factory=PullPointsSettings)
    onvif: OnvifSettings = field(default_factory=OnvifSettings)
    registrations: RegistrationsSettings = field(default_factory=RegistrationsSettings)
    streams: StreamsSettings = field(default_factory=StreamsSettings)
    backbone: BackboneSettings = field(default_factory=BackboneSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    admin: AdminSettings = field(default_factory=AdminSettings)
    routing: RoutingSettings = field(default_factory=RoutingSettings)
    log: LogSettings = field(default_factory=LogSettings)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting by its full name."""

    section: str
    name: str
    default: object
    kind: Kind
    about: str
    secret: bool

    @property
    def key(self) -> str:
        """The full name, `section.name`."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"HPWSN_{self.section}_{self.name}".upper()


def sections() -> dict[str, type]:
    """The dataclass of each section, in the order of the reference."""
    return {part.name: part.default_factory for part in fields(Config)}  # type: ignore[misc]


def _describe(section: str, part: Field[Any]) -> Setting:
    return Setting(section, part.name, part.default, **part.metadata)


def _all_settings() -> Iterator[Setting]:
    for section, owner in sections().items():
        for part in fields(owner):
            yield _describe(section, part)


SETTINGS: dict[str, Setting] = {one.key: one for one in _all_settings()}
