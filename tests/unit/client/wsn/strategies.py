"""What hypothesis draws for the tests of the wire: topics, expressions, payloads, and every message."""

from datetime import UTC

from hypothesis import strategies as st

from hpwsn_client.wsn.operations import messages as m
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import (
    DIALECT_CONCRETE,
    DIALECT_FULL,
    DIALECT_PREDICATES,
    DIALECT_SIMPLE,
    DIALECT_XPATH,
    HPWSN,
    HPWSN_TOPICS,
    SOAP11,
    WSNT,
)
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.soap.xml import encode_element, escape, escape_attribute, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression, parse_topic_expression

# Names that our own envelopes, or XML itself, have another use for are as good as any other.
names = st.one_of(
    st.sampled_from(["A", "B", "wsnt", "wsa", "soap", "hp", "xml", "xmlns", "t", "topics1", "p", "火灾"]),
    st.from_regex(r"[A-Za-z_é京][A-Za-z0-9_.·京-]{0,6}", fullmatch=True),
)
namespaces = st.one_of(
    st.sampled_from([HPWSN_TOPICS, HPWSN, WSNT, SOAP11, "urn:a", "urn:b", "http://[::1]/?a=1&b='2'#c"]),
    st.from_regex(r"urn:[a-z0-9:/&'~]{1,8}", fullmatch=True),
)
steps = st.one_of(names, st.builds("{{{}}}{}".format, namespaces, names))
topics = st.builds(
    lambda namespace, root, below: Topic(namespace, (root, *below)),
    namespaces,
    names,
    st.lists(steps, max_size=4),
)

scopes = st.dictionaries(names.filter(lambda name: name not in ("xml", "xmlns")), namespaces, max_size=4)


@st.composite
def _colon_path(draw: st.DrawFn, scope: dict[str, str]) -> str:
    first = draw(st.one_of(names, st.sampled_from(sorted(scope))) if scope else names)
    rest = draw(st.lists(names, min_size=int(first in scope), max_size=3))
    return ":".join((first, *rest))


@st.composite
def _slash_path(draw: st.DrawFn, scope: dict[str, str], full: bool) -> str:
    prefixes = st.sampled_from(["", *(f"{prefix}:" for prefix in sorted(scope))])
    root = draw(st.one_of(names, st.just("*"))) if full else draw(names)
    text = draw(prefixes) + (draw(st.sampled_from(["", "//"])) if full else "") + root
    for _ in range(draw(st.integers(0, 4))):
        child = draw(prefixes) + draw(names)
        if full:
            child = draw(st.sampled_from(["//", "/"])) + draw(st.sampled_from([child, child, "*", "."]))
        text += child if full else f"/{child}"
    return text


@st.composite
def expression_texts(draw: st.DrawFn, scope: dict[str, str], dialect: str | None) -> str:
    """A text that the dialect allows, in this scope."""
    if dialect == DIALECT_SIMPLE:
        return draw(_colon_path(scope))
    one = st.one_of(_colon_path(scope), _slash_path(scope, dialect != DIALECT_CONCRETE))
    return draw(one) if dialect == DIALECT_CONCRETE else "|".join(draw(st.lists(one, min_size=1, max_size=3)))


@st.composite
def expressions(draw: st.DrawFn) -> TopicExpression:
    """An expression of any dialect."""
    scope = draw(scopes)
    dialect = draw(st.sampled_from([DIALECT_SIMPLE, DIALECT_CONCRETE, DIALECT_FULL, None]))
    return parse_topic_expression(draw(expression_texts(scope, dialect)), dialect, scope)


# Without colons: text that mentions a prefix of the envelope takes its declaration along.
_plain = st.text("abz 京<>&\"'\r\n\t]", max_size=8)


@st.composite
def _element(draw: st.DrawFn, depth: int, prefixes: tuple[str, ...]) -> str:
    name, prefix = draw(st.sampled_from("abc")), draw(st.sampled_from(prefixes))
    declared = ' xmlns="urn:default"' if not prefix and draw(st.booleans()) else ""
    if prefix:
        name, declared = f"{prefix}:{name}", f' xmlns:{prefix}="{draw(_uris)}"'
    attribute = f' k="{escape_attribute(draw(_plain))}"' if draw(st.booleans()) else ""
    inside = draw(st.lists(_element(depth - 1, prefixes), max_size=2)) if depth else []
    return f"<{name}{declared}{attribute}>{escape(draw(_plain))}{''.join(inside)}</{name}>"


def _standing_alone(text: str) -> bytes:
    return encode_element(parse_xml(text.encode()))


_uris = st.sampled_from(["urn:x", "urn:y", WSNT, HPWSN])
payloads = _element(2, ("", "x")).map(_standing_alone)
"""One self-contained element, with default namespaces, foreign ones, and the standard's own."""
payloads_with_our_prefixes = _element(2, ("", "wsnt", "soap", "hp")).map(_standing_alone)
"""The same, with prefixes that our envelopes use, perhaps for something else."""

_foreign = st.sampled_from([b'<q:id xmlns:q="urn:q">7</q:id>', b'<q:p xmlns:q="urn:q" a="1"><plain/></q:p>'])
eprs = st.builds(
    EndpointReference,
    st.sampled_from(["http://127.0.0.1:80/a?b=1&c=<2>", "urn:uuid:1", "http://例.com/"]),
    st.lists(st.one_of(_foreign, st.just(b"<plain/>")), max_size=2).map(tuple),
)
maybe_eprs = st.none() | eprs
notifications = st.builds(m.NotificationMessage, st.none() | expressions(), payloads, maybe_eprs, maybe_eprs)

moments = st.datetimes(timezones=st.just(UTC))
spans = st.builds(
    lambda sign, months, micros: Duration(sign * months, sign * micros / 1_000_000),
    st.sampled_from([1, -1]),
    st.integers(0, 1200),
    st.integers(0, 10**12),
)
_positive_spans = spans.filter(lambda span: (span.months, span.seconds) > (0, 0))
terminations = st.none() | moments | spans

_queries = st.sampled_from(
    [
        ContentFilter(
            DIALECT_XPATH, "e:speed > 60 and child::e:vid = '京B:1' or f:x", (("e", "urn:e"), ("f", "urn:f"))
        ),
        ContentFilter(DIALECT_XPATH, "wsnt:a < 1\n or \"&\" = 'x:y'", (("wsnt", "urn:not-the-standard"),)),
        ContentFilter(DIALECT_XPATH, "wsnt:a", (("wsnt", WSNT),)),
        ContentFilter(DIALECT_PREDICATES, 'speed > 60 and has(keywords, "fire")'),
        ContentFilter("urn:some&other", "anything at all"),
    ]
)
_several = st.lists(_queries, max_size=2).map(tuple)
filters = st.builds(Filter, st.lists(expressions(), max_size=2).map(tuple), _several, _several)
_numbers = st.none() | st.integers(1, 999_999_999)
policies = st.builds(
    m.SubscriptionPolicy,
    st.booleans(),
    st.none()
    | st.builds(
        m.DeliveryPolicy,
        _numbers,
        st.sampled_from([None, "drop-oldest", "reject", "dead-letter"]),
        _numbers,
        st.none() | _positive_spans,
        st.sampled_from([None, "fifo", "cet"]),
    ),
)

_messages = st.lists(notifications, min_size=1, max_size=3).map(tuple)
every_message = st.one_of(
    st.builds(m.Notify, _messages),
    st.builds(m.Subscribe, eprs, filters, terminations, policies, st.lists(_foreign, max_size=2).map(tuple)),
    st.builds(m.SubscribeResponse, eprs, st.none() | moments, st.none() | moments),
    st.builds(m.Renew, terminations),
    st.builds(m.RenewResponse, st.none() | moments, st.none() | moments),
    st.builds(m.GetCurrentMessage, expressions()),
    st.builds(m.GetCurrentMessageResponse, payloads),
    st.builds(m.CreatePullPoint, st.none() | st.sampled_from(["queue", "a<b&\"c'", "京\n1"])),
    st.builds(m.CreatePullPointResponse, eprs),
    st.builds(
        m.GetMessages, st.none() | st.integers(0, 10**18 - 1), st.none() | st.just("") | st.just("b-7")
    ),
    st.builds(m.GetMessagesResponse, st.just(()) | _messages, st.none() | st.just("b-7")),
    st.sampled_from(
        [
            m.Unsubscribe(),
            m.UnsubscribeResponse(),
            m.PauseSubscription(),
            m.PauseSubscriptionResponse(),
            m.ResumeSubscription(),
            m.ResumeSubscriptionResponse(),
            m.DestroyPullPoint(),
            m.DestroyPullPointResponse(),
        ]
    ),
)
