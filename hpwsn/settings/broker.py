"""The settings of the broker: topics, journal, delivery, subscriptions, pull points and publishers."""

from dataclasses import dataclass
from typing import Literal

from hpwsn.settings.quantities import Boolean, Choice, Duration, Integer, Size, Text, Url
from hpwsn.settings.setting import MIB, setting
from hpwsn.settings.topic_table import TopicTable
from hpwsn_client.wsn.soap.version import SOAP_ACTIONS

ENGINES = (
    "default",
    "matching_tree",
    "normal_tree",
    "cma",
    "pre_index",
    "counting",
    "forwarding",
    "sequential",
    "sub_order",
    "naive",
    "kd_tree",
    "rt_cluster",
)
"""The matching engines by name; hpwsn.matching.papers.selectable makes all but the default."""


@dataclass(frozen=True, slots=True)
class TopicsSettings:
    """The topic tree."""

    url: str = setting(
        "",
        Text("a TOML file, an ldap:// or ldaps:// URL, or empty for topics.toml in the data directory"),
        "Topic file or LDAP directory that declares the topics. Only declared topics exist, unless `open`.",
    )
    open: bool = setting(
        False,
        Boolean(),
        "Topics that are not declared appear when they are used. Without `url` they always do.",
    )
    on_remove: str = setting(
        "keep",
        Choice(choices=("keep", "end")),
        "Keep or end subscriptions whose topics are all removed. Open topics always keep them.",
    )
    edit: str = setting(
        "auto",
        Choice(choices=("auto", "never")),
        "Whether clients may edit topics through the node: `auto` allows it for a topic file,"
        " and for LDAP with `edit_bind_dn`.",
    )
    edit_bind_dn: str = setting(
        "", Text("a DN, or empty for topics that are only read"), "DN that edits topics in LDAP."
    )
    edit_password_file: str = setting("", Text("a file"), "Password of `edit_bind_dn`.")
    bind_dn: str = setting("", Text("a DN, or empty for anonymous"), "DN that the node binds as.")
    password_file: str = setting("", Text("a file"), "Password of `bind_dn`.")
    start_tls: bool = setting(False, Boolean(), "Use StartTLS on an ldap:// connection.")
    ca_file: str = setting(
        "",
        Text("a PEM file, or empty for the system's"),
        "CA certificates for the LDAP server.",
    )
    timeout: float = setting(10.0, Duration(0.1, 3600), "Response timeout of the LDAP server.")
    start_wait: float = setting(
        5.0,
        Duration(0, 3600),
        "Maximum wait for the LDAP server at startup, before the saved topics are used.",
    )
    page_size: int = setting(1000, Integer(1, 100_000), "Maximum LDAP entries per page.")
    poll: float = setting(
        5.0, Duration(0.1, 86400), "Polling interval if the LDAP server does not report changes."
    )
    retry_max: float = setting(30.0, Duration(0.1, 3600), "Maximum retry interval for the LDAP server.")
    simple_subtree: bool = setting(
        True, Boolean(), "A Simple topic expression also matches the topics below it."
    )
    open_limit: int = setting(
        1_000_000,
        Integer(1, 100_000_000),
        "Maximum topics of a node with open topics, declared topics included.",
    )

    @property
    def fixed(self) -> bool:
        """Whether only declared topics exist."""
        return bool(self.url) and not self.open


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """The on-disk log of accepted notifications."""

    durability: str = setting(
        "commit",
        Choice(choices=("none", "commit", "fsync")),
        "What accepted notifications survive: nothing, a process crash, or a power failure.",
    )
    id_window: float = setting(600.0, Duration(0), "How long a MessageId is remembered for deduplication.")
    retention_age: float = setting(
        86400.0, Duration(0), "Retention by age; undelivered notifications and dead letters are exempt."
    )
    retention_bytes: int = setting(
        1024 * MIB,
        Size(MIB),
        "Retention by total size, with the same exemptions.",
    )
    reserve: int = setting(
        16 * MIB,
        Size(0, 2**40),
        "Disk space reserved for updates on a full disk; at most an eighth of the disk.",
    )
    max_bytes: int = setting(
        0, Size(0), "Maximum journal file, beyond which publishers get 503; 0 means no limit."
    )
    waiting_limit: int = setting(
        64 * MIB, Size(MIB), "Maximum bytes waiting to be written, beyond which publishers get 503."
    )


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Pushing notifications to consumers."""

    batch: int = setting(64, Integer(1, 10_000), "Maximum notifications per Notify.")
    window: int = setting(1024, Integer(1, 1_000_000), "Maximum offsets read ahead per subscription.")
    cache_bytes: int = setting(64 * MIB, Size(0), "Memory cache of recent notifications.")
    connections_per_host: int = setting(32, Integer(1, 10_000), "Maximum connections per consumer host.")
    connect_timeout: float = setting(10.0, Duration(0.05), "Timeout for connecting to a consumer.")
    response_timeout: float = setting(30.0, Duration(0.05), "Timeout for the consumer's response.")
    retry_first: float = setting(
        0.5, Duration(0.001), "Delay before the first retry; it doubles with each retry, with jitter."
    )
    retry_max: float = setting(60.0, Duration(0.001), "Maximum delay between retries.")
    retry_for: float = setting(
        86400.0, Duration(0), "How long a delivery is retried before it becomes a dead letter."
    )
    max_queue: int = setting(
        1_000_000,
        Integer(1, 1_000_000_000),
        "Maximum backlog of a subscription without its own `maxQueue`.",
    )
    overflow: str = setting(
        "dead-letter",
        Choice(choices=("drop-oldest", "reject", "dead-letter")),
        "Action beyond `max_queue`.",
    )
    raw_only: bool = setting(
        False, Boolean(), "Push only bare payloads: reject push subscriptions without UseRaw."
    )
    soap_action: Literal["empty", "action"] = setting(
        "empty",
        Choice(choices=SOAP_ACTIONS),
        "SOAPAction header of SOAP 1.1 requests: empty, or the action URI.",
    )
    on_gone: str = setting(
        "keep", Choice(choices=("keep", "end")), "Keep or end a subscription whose consumer answers 410."
    )
    ca_file: str = setting(
        "",
        Text("a PEM file, or empty for the system's alone"),
        "Additional CA certificates for https consumers and publishers.",
    )
    receipts: bool = setting(True, Boolean(), "Send receipts to publishers that ask for them.")
    receipt_limit: int = setting(
        10_000, Integer(1, 1_000_000), "Maximum receipts in flight; further ones are not sent."
    )
    receipt_retry_for: float = setting(
        600.0, Duration(0), "How long a receipt is retried; then it is not sent."
    )
    outcome_limit: int = setting(
        10_000,
        Integer(1, 10_000_000),
        "Maximum delivery outcomes queued for plug-ins; further ones are not reported.",
    )


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """Retries per error class. A delay of 0 means the value in `[delivery]`; 0 attempts means no limit."""

    refused_first: float = setting(0.0, Duration(0), "First delay after a refused or lost connection.")
    refused_max: float = setting(0.0, Duration(0), "Maximum delay.")
    refused_attempts: int = setting(0, Integer(0, 1_000_000), "Maximum attempts.")
    timeout_first: float = setting(0.0, Duration(0), "First delay after a timeout.")
    timeout_max: float = setting(0.0, Duration(0), "Maximum delay.")
    timeout_attempts: int = setting(0, Integer(0, 1_000_000), "Maximum attempts.")
    client_error_first: float = setting(0.0, Duration(0), "First delay after a 4xx response.")
    client_error_max: float = setting(600.0, Duration(0), "Maximum delay.")
    client_error_attempts: int = setting(0, Integer(0, 1_000_000), "Maximum attempts.")
    server_error_first: float = setting(0.0, Duration(0), "First delay after a 5xx response.")
    server_error_max: float = setting(0.0, Duration(0), "Maximum delay.")
    server_error_attempts: int = setting(0, Integer(0, 1_000_000), "Maximum attempts.")


@dataclass(frozen=True, slots=True)
class DeadLettersSettings:
    """Notifications that could not be delivered."""

    age: float = setting(7 * 86400.0, Duration(0), "How long dead letters are kept.")
    limit: int = setting(
        1_000_000, Integer(0, 1_000_000_000), "Maximum dead letters; the oldest are removed first."
    )


@dataclass(frozen=True, slots=True)
class SubscriptionsSettings:
    """Limits on subscriptions."""

    limit: int = setting(1_000_000, Integer(1, 100_000_000), "Maximum subscriptions.")
    grace: float = setting(
        60.0, Duration(0), "Grace period after expiry in which a subscription can be renewed."
    )
    max_lifetime: float = setting(0.0, Duration(0), "Maximum lifetime; 0 means no limit.")


@dataclass(frozen=True, slots=True)
class MatchingSettings:
    """Content filters. [matching.md](matching.md#choose-an-engine) compares the engines."""

    engine: str = setting(
        "default", Choice(choices=ENGINES), "The engine that matches content filters, by name."
    )
    topics: tuple[tuple[str, str], ...] = setting(
        (),
        TopicTable(ENGINES),
        "The engine for single topics and all topics below them; the most specific entry wins.",
    )
    compiled: str = setting(
        "auto",
        Choice(choices=("auto", "never")),
        "Match many predicates with compiled code; auto requires numba.",
    )


@dataclass(frozen=True, slots=True)
class PullPointsSettings:
    """Limits on pull points."""

    limit: int = setting(100_000, Integer(1, 10_000_000), "Maximum pull points.")
    max_messages: int = setting(1000, Integer(1, 100_000), "Maximum notifications per GetMessages response.")
    queue_limit: int = setting(
        1_000_000,
        Integer(1, 1_000_000_000),
        "Maximum backlog of a pull point; the oldest are removed first.",
    )
    confirm_after: float = setting(
        0.0,
        Duration(0),
        "Delay after which a returned batch counts as received; 0 means never.",
    )
    idle_lifetime: float = setting(
        0.0,
        Duration(0),
        "A pull point that nobody reads for so long is destroyed with its subscriptions, unless its creator"
        " asked for another lifetime; 0 means never.",
    )


@dataclass(frozen=True, slots=True)
class OnvifSettings:
    """The ONVIF event service."""

    lifetime: float = setting(
        3600.0,
        Duration(1),
        "Default lifetime of a pull point subscription.",
    )
    max_timeout: float = setting(600.0, Duration(0), "Maximum Timeout of PullMessages.")
    max_messages: int = setting(
        4096,
        Integer(1, 1_000_000),
        "Maximum MessageLimit of PullMessages.",
    )
    waiting_limit: int = setting(1000, Integer(0, 1_000_000), "Maximum concurrent PullMessages that wait.")
    users_file: str = setting(
        "",
        Text("a file of lines name:password, or empty for no check"),
        "Users, who authenticate with a UsernameToken.",
    )
    token_window: float = setting(300.0, Duration(1), "Maximum clock difference of a UsernameToken.")


@dataclass(frozen=True, slots=True)
class RegistrationsSettings:
    """Registered publishers, and publishers on demand."""

    required: bool = setting(False, Boolean(), "Only registered publishers may publish.")
    limit: int = setting(10_000, Integer(1, 1_000_000), "Maximum registrations.")
    topics_limit: int = setting(1000, Integer(1, 100_000), "Maximum topics per registration.")
    max_lifetime: float = setting(0.0, Duration(0), "Maximum lifetime; 0 means no limit.")
    lifetime: float = setting(
        600.0,
        Duration(1),
        "Lifetime of subscriptions at publishers on demand; renewed at half of it.",
    )
    linger: float = setting(
        1.0, Duration(0), "Delay before a publisher on demand without subscribers is paused."
    )


@dataclass(frozen=True, slots=True)
class StreamsSettings:
    """Stream services registered by jobs, and those that the node runs itself."""

    limit: int = setting(1000, Integer(1, 100_000), "Maximum stream services.")
    silent_after: float = setting(
        15.0, Duration(1), "Time without a heartbeat after which a service is silent."
    )
    forget_after: float = setting(
        7 * 86400.0, Duration(0), "Time after which a silent or stopped service is removed; 0 means never."
    )
    agent: bool = setting(
        False, Boolean(), "Run services whose definitions clients POST to /streams, each as a process."
    )
    agent_limit: int = setting(16, Integer(1, 1000), "Maximum services that the node runs.")
    agent_functions: bool = setting(
        False,
        Boolean(),
        "Accept posted definitions with Python functions or SQL; these run code as the node's user.",
    )
    agent_folder: str = setting(
        "",
        Text("an absolute path, or empty for none"),
        "Folder whose files posted definitions may read (source `files`).",
    )
    master: str = setting(
        "local[2]", Text("a Spark master", empty=False), "Spark master of services that the node runs."
    )
    archive: str = setting(
        "",
        Text("a .tar.gz file, or empty"),
        "With the master of a cluster: the workers' environment, made by `hpwsn streams pack`.",
    )
    checkpoints: str = setting(
        "",
        Text("a folder, or empty for one in the data directory"),
        "Checkpoints of services that the node runs; on a cluster, a path that all workers share.",
    )
    url: str = setting(
        "",
        Url("an http or https URL, or empty for the listening address; on a cluster, the public one"),
        "The node's address for jobs that it runs.",
    )
    restarts: int = setting(
        5, Integer(0, 1000), "Restarts of a crashed job within `restart_within`; the next crash is its last."
    )
    restart_within: float = setting(600.0, Duration(1), "Time in which crashes of a job are counted.")
    stop_timeout: float = setting(
        40.0, Duration(0), "Grace period of a job that is stopped, before it is killed."
    )
