"""The scanner of one large message gives what the ordinary scanner gives, or leaves it to the full parser."""

from __future__ import annotations

import pytest

from hpwsn.door.notify.large_scan import read_large
from hpwsn.door.notify.scan import NotifyScan
from hpwsn.notification import PARTIAL, RELIABLE
from hpwsn_client.wsn.soap.xml import Limits

LIMITS = Limits(body=64 << 20)
FRAME = (
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:p="urn:p">{}<s:Body>'
    '<w:Notify xmlns:w="http://docs.oasis-open.org/wsn/b-2"><w:NotificationMessage><w:Topic'
    ' Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple">A</w:Topic>'
    "<w:Message>{}</w:Message></w:NotificationMessage></w:Notify></s:Body></s:Envelope>"
)
HEADER = (
    '<s:Header><h:MessageId xmlns:h="urn:hpwsn:1">m1</h:MessageId>'
    '<h:Routing xmlns:h="urn:hpwsn:1" reliable="true" partial="1"/></s:Header>'
)
LONG = "0123456789" * 150_000
"""More than a window, so that borders of windows are passed."""


def notify(payload: str, headers: str = "") -> bytes:
    return FRAME.format(headers, payload).encode()


@pytest.mark.parametrize(
    "payload",
    [
        "<a/>",
        "<a>text</a>",
        '<a b="1"><c/><d>é</d></a>',
        "<p:a>1</p:a>",
        "<a>p:name</a>",
        " <a>around</a>\n",
        "<a>&amp;&#65;</a>",
        f"<a>{LONG}</a>",
        "<a>" + "<p:i>12</p:i><e/>" * 100_000 + "</a>",
        "text alone",
    ],
    ids=lambda payload: payload[:20],
)
@pytest.mark.parametrize("headers", ["", HEADER], ids=["plain", "headers"])
def test_both_scanners_agree(payload: str, headers: str):
    data = notify(payload, headers)
    run = read_large(data, LIMITS)
    expected = NotifyScan(LIMITS).read(data)
    assert run is not None
    assert expected is not None
    assert run.first == expected[0].first
    assert run.routing == ((RELIABLE | PARTIAL) if headers else 0)
    assert run.payloads == expected[0].payloads


@pytest.mark.parametrize(
    "payload",
    [
        "<a/><b/>",
        "<a/>tail",
        "<a>",
        "<a><b></a>",
        "<q:a/>",
        '<a q:b="1"/>',
        "<a b='1' b='2'/>",
        "<a>&unknown;</a>",
        "<a>text with /> in it</a>",
        "<a><!-- comment --></a>",
        "<a><![CDATA[x]]></a>",
        "<a><?pi?></a>",
        "<w:Message>x</w:Message>",
        "<a>\x1e</a>",
        "",
        " ",
        "<a>" * 252 + "</a>" * 252,
        "<a " + " ".join(f'b{number}=""' for number in range(300)) + "/>",
    ],
    ids=lambda payload: payload[:20],
)
def test_what_is_not_ordinary_is_left_to_the_full_parser(payload: str):
    assert read_large(notify(payload), LIMITS) is None


def test_the_deepest_element_that_is_accepted():
    assert read_large(notify("<a>" * 251 + "</a>" * 251), LIMITS) is not None


def test_more_bytes_than_the_limit_are_left_to_the_full_parser():
    data = notify("<a/>")
    assert read_large(data, Limits(body=len(data))) is not None
    assert read_large(data, Limits(body=len(data) - 1)) is None


def test_text_keeps_its_escapes():
    run = read_large(notify("a &lt; b &amp; c > d"), LIMITS)
    assert run is not None
    assert run.first.payload == b'<hp:text xmlns:hp="urn:hpwsn:1">a &lt; b &amp; c > d</hp:text>'
