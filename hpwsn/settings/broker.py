"""The settings of what a broker does for its publishers and subscribers."""

from dataclasses import dataclass
from typing import Literal

from hpwsn.settings.quantities import Choice, Flag, Seconds, Size, Text, Whole
from hpwsn.settings.setting import MIB, setting
from hpwsn_client.wsn.soap.version import SOAP_ACTIONS


@dataclass(frozen=True, slots=True)
class TopicsSettings:
    """The topic tree."""

    url: str = setting(
        "",
        Text("a TOML file, an ldap:// or ldaps:// URL, or empty for open topics"),
        "The topic tree, in a file or an LDAP directory; without one, topics appear as they are used.",
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
    soap_action: Literal["empty", "action"] = setting(
        "empty",
        Choice(choices=SOAP_ACTIONS),
        "SOAPAction of SOAP 1.1 requests: empty, or the action's URI for consumers that dispatch on it.",
    )
    on_gone: str = setting(
        "keep", Choice(choices=("keep", "end")), "Whether a consumer that answers 410 ends its subscription."
    )
    ca_file: str = setting(
        "",
        Text("a PEM file, or empty for the system's alone"),
        "Authorities, beside the system's, for the certificates of consumers and publishers with https.",
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
