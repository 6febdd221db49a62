"""The Notify lane reads what the full parser reads, or leaves it alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from lxml import etree

from hpwsn.door.notify import scan as module
from hpwsn.door.notify import scan as notify_scan
from hpwsn.door.notify import scope
from hpwsn.door.notify.scan import NotifyScan
from hpwsn.notification import PARTIAL, RELIABLE, Notification, members
from hpwsn_client.wsn.operations.notifications import encode_content, parse_notify
from hpwsn_client.wsn.soap.envelope import check_must_understand, parse_envelope
from hpwsn_client.wsn.soap.names import HPWSN
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits, parse_xml
from tests.unit.client.wsn.notify_envelopes import CLIENTS, CONCRETE, ORDINARY, SOAP11, WSA, WSNT, Envelopes

FULL = CONCRETE.replace("Concrete", "Full")


class Scan(NotifyScan):
    """The scan, with the single notifications of its runs."""

    def read(self, data: bytes) -> list[Notification] | None:  # type: ignore[override]
        runs = super().read(data)
        return None if runs is None else list(members(runs))


SCAN = Scan(DEFAULT_LIMITS)


def full(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[Notification] | None:
    """What the full parser makes of it; None where it refuses or there is no one topic."""
    try:
        envelope = parse_envelope(data, limits)
        check_must_understand(envelope, ())
        if envelope.body is None or envelope.body.tag != f"{{{WSNT}}}Notify":
            return None
        messages = parse_notify(envelope.body, limits)
    except SoapFault:
        return None
    if any(message.topic is not None and message.topic.topic is None for message in messages):
        return None
    header = envelope.header(f"{{{HPWSN}}}MessageId")
    id_ = None if header is None else (header.text or "").strip() or None
    return [
        Notification(
            None if message.topic is None else message.topic.topic, *encode_content(message), 0.0, id_
        )
        for message in messages
    ]


def shape(element: etree._Element) -> object:
    """All that an element holds, but how its names are abbreviated."""
    return element.tag, dict(element.attrib), element.text, element.tail, [shape(child) for child in element]


def assert_same_payload(one: bytes, other: bytes, data: bytes) -> None:
    """Alike in all but prefixes, and what prefixes in the other stand for, they stand for in the one."""
    ours, theirs = parse_xml(one), parse_xml(other)
    assert shape(ours) == shape(theirs), data
    # A name may begin with other letters than those of ASCII, and is then another one. After a slash it is a
    # part of a URI, or of an end tag, whose start tag counts.
    used = {prefix.decode() for prefix in re.findall(rb"(?<![\w.\x80-\xff/-])[\w.-]+(?=:)", other)}
    for prefix, uri in theirs.nsmap.items():
        if prefix in used:
            assert ours.nsmap.get(prefix) == uri, (prefix, data)


def assert_equal(scanned: Sequence[Notification], read: list[Notification] | None, data: bytes) -> None:
    assert read is not None, f"the full parser refuses {data!r}"
    assert len(scanned) == len(read)
    for one, other in zip(scanned, read, strict=True):
        assert (one.topic, one.message_id) == (other.topic, other.message_id)
        assert one.content[: one.start] == other.content[: other.start]
        assert one.content[one.end :] == other.content[other.end :]
        assert_same_payload(one.content[one.start : one.end], other.content[other.start : other.end], data)


@pytest.mark.parametrize("client", CLIENTS)
def test_what_clients_send_means_the_same_in_both_lanes(client: str) -> None:
    data = CLIENTS[client].encode()
    scanned = SCAN.read(data)
    if client in ORDINARY:
        assert scanned is not None
    if scanned is not None:
        assert_equal(scanned, full(data), data)
        assert SCAN.read(data) == scanned  # now from memory


@settings(max_examples=1500)
@given(st.integers(0, 2**32))
def test_any_envelope_means_the_same_in_both_lanes(seed: int) -> None:
    data = Envelopes(seed).envelope()
    scanned = SCAN.read(data)
    event("in the lane" if scanned else "left alone")
    if scanned is not None:
        assert_equal(scanned, full(data), data)


@settings(max_examples=1500)
@given(st.integers(0, 2**32))
def test_a_damaged_envelope_is_left_alone_or_means_the_same(seed: int) -> None:
    data = Envelopes(seed).damaged()
    scanned = SCAN.read(data)
    event("in the lane" if scanned else "left alone")
    if scanned is not None:
        assert_equal(scanned, full(data), data)


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_what_is_remembered_changes_nothing(seed: int) -> None:
    data = Envelopes(seed).envelope()
    assert list(SCAN.read(data) or ()) == list(Scan(DEFAULT_LIMITS).read(data) or ())


def notify(messages: str, scope: str = "") -> bytes:
    return (
        f'<s:Envelope xmlns:s="{SOAP11}" xmlns:w="{WSNT}"{scope}><s:Body><w:Notify>{messages}</w:Notify>'
        "</s:Body></s:Envelope>"
    ).encode()


def message(payload: str, topic: str = "") -> str:
    return f"<w:NotificationMessage>{topic}<w:Message>{payload}</w:Message></w:NotificationMessage>"


@settings(max_examples=1500)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_a_damaged_envelope_of_remembered_parts_is_left_alone_or_means_the_same(seed: int, harm: int) -> None:
    scan, data = Scan(DEFAULT_LIMITS), Envelopes(seed).envelope()
    scan.read(data)
    data = Envelopes(harm).damage(data)
    scanned = scan.read(data)
    event("in the lane" if scanned else "left alone")
    if scanned is not None:
        assert_equal(scanned, full(data), data)


@pytest.mark.parametrize(
    "inner",
    ["<a>", "</a>", "<a/><b/>", "<a/>t", "<q:a/>", "<a b='1' b='1'/>", "<a>&no;</a>", "<a>\x01</a>",
     "<a>\\xff</a>", "</w:Message></w:NotificationMessage>", "<a></w:Message></w:NotificationMessage>",
     "<_\u00b7/>", "</_\u00b7><_\u00b7>", "<a/></_\u00b7><_\u00b7><b/>"],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", message("<x/>"), message("<x/>") * 2])
def test_no_payload_breaks_out_of_what_is_remembered(inner: str, before: str) -> None:
    scan = Scan(DEFAULT_LIMITS)
    for known in (message("<x/>"), message("<x/>") * 3):
        assert scan.read(notify(known)) is not None
    data = notify(before + message(inner) + before).replace(b"\\xff", b"\xff")
    scanned = scan.read(data)
    if scanned is not None:
        assert_equal(scanned, full(data), data)


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u00a0", "\ufeff", "\x00"])
@pytest.mark.parametrize(
    "place",
    ["</w:Message%s>", "</w:Message>%s", "</w:NotificationMessage%s>", "</w:NotificationMessage>%s",
     "</w:Notify%s>", "</w:Notify>%s", "</s:Body%s>", "</s:Body>%s", "</s:Envelope%s>", "</s:Envelope>%s"],
)  # fmt: skip
def test_what_is_no_blank_of_xml_is_none_behind_remembered_parts(odd: str, place: str) -> None:
    scan, data = Scan(DEFAULT_LIMITS), notify(message("<x/>") * 2)
    assert scan.read(data) is not None
    harmed = data.replace(place.replace("%s", "").encode(), (place % odd).encode(), 1)
    assert scan.read(harmed) is None
    assert scan.read(data.replace(place.replace("%s", "").encode(), (place % "\n").encode(), 1)) is not None


def test_messages_on_several_topics_are_read_in_their_order() -> None:
    topics = [f"<w:Topic>t{n}</w:Topic>" for n in (0, 0, 1, 1, 0, 2)]
    data = notify("".join(message(f"<a>{n}</a>", topic) for n, topic in enumerate(topics)))
    for _ in range(2):
        scanned = SCAN.read(data)
        assert scanned is not None
        assert [str(each.topic) for each in scanned] == ["t0", "t0", "t1", "t1", "t0", "t2"]
        assert_equal(scanned, full(data), data)


@pytest.mark.parametrize("messages", [1, 3])
def test_the_id_of_a_notify_is_that_of_all_its_messages(messages: int) -> None:
    header = f'<s:Header><hp:MessageId xmlns:hp="{HPWSN}"> %s </hp:MessageId></s:Header><s:Body>'
    for id_ in ("one", "two"):
        data = notify(message("<a/>") * messages).replace(b"<s:Body>", (header % id_).encode())
        scanned = SCAN.read(data)
        assert scanned is not None
        assert [each.message_id for each in scanned] == [id_] * messages
        assert_equal(scanned, full(data), data)


def payload_of(data: bytes) -> bytes:
    scanned = SCAN.read(data)
    assert scanned is not None
    return scanned[0].content[scanned[0].start : scanned[0].end]


def test_a_payload_takes_along_the_namespaces_it_uses_and_no_others() -> None:
    data = notify(message("<p:a q='w:x'/>"), ' xmlns:p="urn:p" xmlns:r="urn:r"')
    assert payload_of(data) == b'<p:a xmlns:w="%b" xmlns:p="urn:p" q=\'w:x\'/>' % WSNT.encode()


def test_a_prefix_that_only_text_mentions_is_taken_along() -> None:
    assert b'xmlns:p="urn:p"' in payload_of(notify(message("<a>p:Name</a>"), ' xmlns:p="urn:p"'))


def test_a_prefix_that_is_spelled_in_numbers_is_taken_along() -> None:
    assert b'xmlns:p="urn:p"' in payload_of(notify(message("<a>&#112;:Name</a>"), ' xmlns:p="urn:p"'))


def test_a_default_namespace_in_scope_is_taken_along() -> None:
    data = notify(message("<a/>"), ' xmlns="urn:default"')
    assert parse_xml(payload_of(data)).tag == "{urn:default}a"


@pytest.mark.parametrize(
    "declared", [""" xmlns:p="urn:p" k=" xmlns:p='urn:q'\"""", """ k=' xmlns="urn:q"'"""]
)
def test_what_looks_like_a_declaration_inside_of_a_value_is_none(declared: str) -> None:
    data = notify(message("<a>p:Name</a>"), declared)
    assert b"urn:q" not in payload_of(data)
    assert_equal(SCAN.read(data) or [], full(data), data)


def test_what_looks_like_a_dialect_inside_of_a_value_is_none() -> None:
    topic = f"""<w:Topic k=" Dialect='{FULL}'" Dialect="{CONCRETE}">a/b</w:Topic>"""
    data = notify(message("<a/>", topic))
    assert_equal(SCAN.read(data) or [], full(data), data)


def test_a_line_end_within_a_producers_address_means_the_same_in_both_lanes() -> None:
    producer = f'<w:ProducerReference><a:Address xmlns:a="{WSA}">urn:x\r\ny</a:Address></w:ProducerReference>'
    assert SCAN.read(notify(message("<a/>", producer.replace("\r", "")))) is not None
    assert SCAN.read(notify(message("<a/>", producer))) is None


def test_more_namespaces_in_scope_than_pay_are_left_to_the_full_parser() -> None:
    most = "".join(f' xmlns:p{n}="urn:p"' for n in range(scope.MOST - 2))
    assert SCAN.read(notify(message("<a/>"), most)) is not None
    assert SCAN.read(notify(message("<a/>"), most + ' xmlns:q="urn:q"')) is None


@pytest.mark.parametrize(
    "inner",
    [
        "<a/><b/>",
        "<a/>text>",
        "text <a/>",
        "",
        " ",
        "<a><!-- c --></a>",
        "<a><![CDATA[x]]></a>",
        "<a><?pi?></a>",
        "<a><w:NotificationMessage><w:Message><b/></w:Message></w:NotificationMessage></a>",
    ],
)
def test_what_is_wrong_or_unusual_is_left_to_the_full_parser(inner: str) -> None:
    assert SCAN.read(notify(message(inner))) is None


def test_a_header_that_is_not_of_addressing_is_left_to_the_full_parser() -> None:
    data = notify(message("<a/>")).replace(b"<s:Body>", b"<s:Header><x xmlns='urn:x'/></s:Header><s:Body>")
    assert SCAN.read(data) is None


def test_limits_hold_in_the_lane() -> None:
    limits = Limits(body=2000, depth=8, attributes=4, messages=2)
    scan = Scan(limits)
    assert scan.read(notify(message("<a/>") * 2)) is not None
    assert scan.read(notify(message("<a/>") * 3)) is None
    assert scan.read(notify(message(f"<a>{'x' * 2000}</a>"))) is None
    assert scan.read(notify(message("<a><b><c/></b></a>"))) is not None
    assert scan.read(notify(message("<a><b><c><d/></c></b></a>"))) is None
    assert scan.read(notify(message("<a b='' c='' d='' e='' f=''/>"))) is None


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify_scan, "MOST_OPENINGS", 8)
    monkeypatch.setattr(notify_scan, "MOST_FRAMES", 4)
    scan = Scan(DEFAULT_LIMITS)
    for number in range(50):
        topic = f"<w:Topic>t{number}</w:Topic>"
        scope = f' xmlns:p{number % 7}="urn:p"'
        scanned = scan.read(notify(message("<a/>", topic), scope))
        assert scanned is not None
        assert str(scanned[0].topic) == f"t{number}"
        assert len(scan._openings) <= 8
        assert len(scan._frames) <= 4


@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        ("", (False, False)),
        ('<hp:Routing reliable="true"/>', (True, False)),
        ('<hp:Routing partial="1" reliable="0"/>', (False, True)),
        ('<hp:Routing partial="true" reliable="1">x</hp:Routing>', (True, True)),
        ('<hp:Routing reliable="maybe"/>', None),
        ('<hp:Routing/><hp:Routing reliable="true"/>', None),
        ('<hp:Routing reliable="1"/><hp:MessageId>1</hp:MessageId>', (True, False)),
        ("<hp:Routing/><hp:Other/>", None),
    ],
)
def test_the_routing_header_is_heeded_and_an_unclear_one_left_to_the_full_parser(
    headers: str, asked: tuple[bool, bool] | None
) -> None:
    data = (
        f'<s:Envelope xmlns:s="{SOAP11}" xmlns:w="{WSNT}" xmlns:hp="urn:hpwsn:1">'
        f"<s:Header>{headers}</s:Header>"
        "<s:Body><w:Notify><w:NotificationMessage><w:Message><a/></w:Message></w:NotificationMessage></w:Notify>"
        "</s:Body></s:Envelope>"
    ).encode()
    scan = Scan(DEFAULT_LIMITS)
    found = scan.read(data)
    assert (found is None) is (asked is None)
    if found is not None and asked is not None:
        assert [one.routing for one in found] == [RELIABLE * asked[0] + PARTIAL * asked[1]]


def test_a_notify_like_an_earlier_one_is_read_without_any_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def notify(number: int) -> bytes:
        return (
            f'<s:Envelope xmlns:s="{SOAP11}" xmlns:w="{WSNT}"><s:Body><w:Notify><w:NotificationMessage>'
            f'<w:Topic Dialect="{CONCRETE}">A</w:Topic><w:Message><m><n>{number}</n></m></w:Message>'
            "</w:NotificationMessage></w:Notify></s:Body></s:Envelope>"
        ).encode()

    scan = Scan(DEFAULT_LIMITS)
    for number in range(3):
        assert scan.read(notify(number)) is not None

    def builds_a_tree(*arguments: object, **options: object) -> None:
        raise AssertionError("a tree is built")

    for name in ("fromstring", "XML", "parse"):
        monkeypatch.setattr(etree, name, builds_a_tree)
    found = scan.read(notify(7))
    assert found is not None
    assert b"<n>7</n>" in found[0].content
    with pytest.raises(AssertionError, match="a tree is built"):
        scan.read(notify(7).replace(b"<n>", b"<o/><n>"))


def test_only_what_begins_as_a_notify_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(module, "parse_plain", lambda data, limits: parsed.append(data))
    subscribe = (
        f'<s:Envelope xmlns:s="{SOAP11}" xmlns:w="{WSNT}"><s:Body><w:Subscribe/></s:Body></s:Envelope>'
    )
    assert Scan(DEFAULT_LIMITS).read(subscribe.encode()) is None
    assert not parsed


def alike(text: str, topic: str = "a") -> bytes:
    return notify(
        f'<w:NotificationMessage><w:Topic Dialect="{CONCRETE}">{topic}</w:Topic>'
        f"<w:Message>{text}</w:Message></w:NotificationMessage>"
    )


ODD = (
    "<n>1</n>\x1e<n>2</n>",
    "<n>1</n><n>2</n>",
    "<n>1</n></w:Message><w:Message><n>2</n>",
    "<n><!-- 1 --></n>",
    "<n>&unknown;</n>",
    "<n>\ufffe</n>",
    "<n><m>1</n></m>",
    "<w:n>1</w:n>",
    " <n>1</n>",
    "<n>1",
    "",
)


@given(st.lists(st.sampled_from([*map(str, range(5)), "&amp;", "é", *ODD]), min_size=2, max_size=6))
def test_envelopes_that_are_read_together_mean_what_each_means(texts: list[str]) -> None:
    scan = Scan(DEFAULT_LIMITS)
    for number in range(8):
        scan.read(alike(f"<n>{number}</n>"))
    envelopes = [alike(text if text in ODD else f"<n>{text}</n>") for text in texts]
    found = scan.read_alike(envelopes)
    if all(text not in ODD for text in texts):
        assert found is not None
    assert found is None or len(found) >= 2
    for one, data in zip(found or (), envelopes, strict=False):
        read = scan.read(data)
        assert read is not None
        assert [one] == list(read)


def test_envelopes_are_read_together_as_far_as_they_are_alike() -> None:
    scan = Scan(DEFAULT_LIMITS)
    for number in range(8):
        scan.read(alike(f"<n>{number}</n>"))
    found = scan.read_alike([alike("<n>1</n>"), alike("<n>2</n>"), alike("<n>3</n>", "b"), alike("<n>4</n>")])
    assert found is not None
    assert [one.content[one.start : one.end] for one in found] == [b"<n>1</n>", b"<n>2</n>"]
    assert scan.read_alike([alike("<n>3</n>", "b"), alike("<n>4</n>", "b")]) is None


def learn(scan: Scan, *payloads: str, scope: str = "") -> None:
    """Have the shape of the first payload known."""
    for _ in range(3):
        scan.read(notify("".join(map(message, payloads)), scope))


def test_a_shape_is_not_learned_from_what_a_later_warning_hid() -> None:
    scan = Scan(DEFAULT_LIMITS)
    learn(scan, "<q:a>1</q:a>", "<b xmlns='relative'/>")
    assert scan.read(notify(message("<q:a>1</q:a>"))) is None


def test_a_shape_has_no_more_attributes_than_are_accepted() -> None:
    scan = Scan(Limits(attributes=3))
    header = f"<s:Header><a:Action xmlns:a='{WSA}'>x</a:Action></s:Header><s:Body>".encode()
    for _ in range(3):
        scan.read(notify(message("<p:a b='' c='' d=''/>"), ' xmlns:p="urn:p"').replace(b"<s:Body>", header))
    declared = notify(message("<p:a xmlns:p=\"urn:p\" b='' c='' d=''/>"))
    assert full(declared, Limits(attributes=3)) is None
    assert scan.read(declared) is None


SHAPED = "<p:a k='%s' xml:lang='de' xmlns:p=\"urn:a\"><b l=\"%s\">%s</b>%s<c/></p:a>"
PLAIN = (
    "", "1", " p:b\t", "\r\n", "&amp;&lt;&gt;&quot;&apos;", "]]", "\u4eac\U0001f600\x7f\u0085\ufffd",
    "w:x s:",
)  # fmt: skip
WRONG = (
    "&", "&amp", "&no;", "&&amp;;", "&#0;", "<", "<b>", "</b>", "]]><", "\x00", "\x0b", "\x1e", "\x1f",
    "\ufffe", "\uffff", "\\xff", "\\xc0\\xaf", "\\xed\\xa0\\x80", "\\xf4\\x90\\x80\\x80", "\\xe4\\xba",
)  # fmt: skip


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("messages", [1, 3])
def test_what_fits_a_shape_is_what_libxml2_would_pass(place: int, messages: int) -> None:
    scan = Scan(DEFAULT_LIMITS)
    learn(scan, *[SHAPED % ("1", "2", "3", "4")] * messages, scope=' xmlns:p="urn:p"')
    for text in (*PLAIN, *WRONG, *"'\"", "' l='", '" k="', ">", "]]>", "&#65;"):
        texts = ["x"] * 4
        texts[place] = text
        data = notify(message(SHAPED % ("1", "2", "3", "4")) * (messages - 1) + message(SHAPED % (*texts,)))
        data = data.replace(b" xmlns:w", b' xmlns:p="urn:p" xmlns:w', 1)
        data = re.sub(rb"\\x(..)", lambda found: bytes([int(found[1], 16)]), data)
        scanned = scan.read(data)
        assert (scanned is None) or text not in WRONG, data
        assert (scanned is not None) or text not in PLAIN, data
        if scanned is not None:
            assert_equal(scanned, full(data), data)


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_damage_to_a_payload_of_a_known_shape_is_found(seed: int, harm: int) -> None:
    scan, element = Scan(DEFAULT_LIMITS), Envelopes(seed).element()
    learn(scan, element, element, scope=' xmlns:p="urn:p" xmlns:a="urn:a"')
    harmed = Envelopes(harm).damage(element.encode())
    data = notify(message("?") + message(element), ' xmlns:p="urn:p" xmlns:a="urn:a"').replace(
        b"?", harmed, 1
    )
    scanned = scan.read(data)
    event("in the lane" if scanned else "left alone")
    if scanned is not None:
        assert_equal(scanned, full(data), data)


def test_a_shape_is_of_the_names_that_stand_in_it_wherever_it_is_used() -> None:
    scan = Scan(DEFAULT_LIMITS)
    for uri in ("urn:1", "urn:2", "urn:1"):
        for around in (f' xmlns="{uri}"', f' xmlns:p="{uri}"', ""):
            for payload in ("<a k='p:x'>1</a>", "<p:a>1</p:a>"):
                learn(scan, payload, payload, scope=around)
                data = notify(message(payload) * 2, around)
                scanned = scan.read(data)
                assert (scanned is None) == (full(data) is None)
                if scanned is not None:
                    assert_equal(scanned, full(data), data)


def test_a_byte_that_ends_payloads_makes_no_two_of_one() -> None:
    scan = Scan(DEFAULT_LIMITS)
    for _ in range(3):
        assert len(scan.read(notify(message("<x/>"))) or ()) == 1
        assert len(scan.read(notify(message("<x/>") * 2)) or ()) == 2
    assert scan.read(notify(message("<x/>\x1e<x/>"))) is None
    assert scan.read(notify(message("<x/>\x1e<x/>") * 2)) is None


def test_payloads_of_known_and_of_unknown_shapes_and_headers_go_together() -> None:
    scan = Scan(DEFAULT_LIMITS)
    for payload in ("<x>1</x>", "<x>2</x>", "<x>3</x>", "<x><y/></x>", "<x>4</x>"):
        for several in (1, 2):
            for header in ("", f'<s:Header><h:MessageId xmlns:h="{HPWSN}">i</h:MessageId></s:Header>'):
                data = notify(message("<x>0</x>") + message(payload) * several)
                data = data.replace(b"<s:Body>", f"{header}<s:Body>".encode())
                assert_equal(scan.read(data) or (), full(data), data)
