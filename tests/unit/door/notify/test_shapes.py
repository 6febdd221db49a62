"""What fits a shape is what libxml2 would pass, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.door.notify import shapes
from hpwsn.door.notify.shapes import MOST_CREDIT, PRICE, Shapes
from hpwsn.notification import END, split_payloads
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, parse_content

READING = b'<m:r xmlns:m="urn:m" at="hall"><m:v unit=\'K\'>21.5</m:v><m:empty/> <m:v/></m:r>'
TRICKY = b'<a xmlns:p="urn:x" xml:base="y c=\'d\'" b="e"><p:g h="1"></p:g>i</a>'
SNIPPETS = [
    *(b"<", b">", b"&", b"&amp;", b"&lt;", b"&#65;", b"&no;", b"]]>", b"\x1e", b"\x00", b"\x0b", b"\r\n"),
    *(b'"', b"'", b"/", b" ", b":", b"=", b"m:", b"x:", b"xmlns:m='urn:n'", b" z='1'", b"urn:", b"<m:v/>"),
    *(b"\xc3\xa4", b"\xe4", b"\xef\xbf\xbe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x7f", b"</m:r>", b"a"),
]


def check(element: bytes) -> None:
    parse_content(element, DEFAULT_LIMITS, 0)


def knowing(*elements: bytes) -> Shapes:
    known = Shapes(check)
    for element in elements:
        known.learn(element)
        known.learn(element)
    return known


@pytest.mark.parametrize(
    "change",
    [
        (b"21.5", b"22 &amp; more\n"),
        (b"21.5", b""),
        (b"hall", "Flur &lt; Küche".encode()),
        (b"'K'", b"'C'"),
        (b"<m:empty/> <", b"<m:empty/><"),
    ],
)
def test_other_text_and_other_values_fit(change: tuple[bytes, bytes]) -> None:
    assert knowing(READING).fit(READING.replace(*change) + END)


@pytest.mark.parametrize(
    "change",
    [
        (b"urn:m", b"urn:n"),
        (b"m:empty", b"m:other"),
        (b"unit", b"Unit"),
        (b"21.5", b"21.5<m:x/>"),
        (b"21.5", b"&#50;"),
        (b"21.5", b"&no;"),
        (b"21.5", b"\x0b"),
        (b"21.5", b"\xe4"),
        (b"21.5", b"\xef\xbf\xbf"),
        (b"hall", b"<"),
        (b"hall", b'x" y="'),
    ],
)
def test_whatever_else_differs_is_for_libxml2(change: tuple[bytes, bytes]) -> None:
    changed = READING.replace(*change)
    assert changed != READING
    assert not knowing(READING).fit(changed + END)


def test_what_looks_like_an_attribute_inside_of_another_is_none() -> None:
    known = knowing(TRICKY)
    assert known.fit(TRICKY.replace(b'"e"', b'"f"') + END)
    assert not known.fit(TRICKY.replace(b"c='d'", b"c='e'") + END)


@given(st.sampled_from([READING, TRICKY]), st.data())
def test_what_fits_is_well_formed_and_one_element_each(element: bytes, data: st.DataObject) -> None:
    row = element + END + element + END
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(row)))
        until = data.draw(st.integers(at, min(len(row), at + 6)))
        row = row[:at] + data.draw(st.sampled_from(SNIPPETS)) + row[until:]
    if knowing(element).fit(row):
        for each in split_payloads(row):
            parse_content(each, DEFAULT_LIMITS, 0)


def test_variants_of_a_name_fit_in_one_row() -> None:
    one, other = b"<a><b>1</b></a>", b"<a><c>2</c></a>"
    known = knowing(one)
    for _ in range(2):
        known.learn(other)
    assert known.fit(one + END + other + END + one + END)


def test_a_name_that_comes_once_is_not_learned() -> None:
    known = Shapes(check)
    known.learn(READING)
    assert not known.fit(READING + END)


def test_what_is_not_well_formed_by_itself_is_not_learned() -> None:
    known = Shapes(check)
    known.learn(b"<a:b/>")
    with pytest.raises(SoapFault):
        known.learn(b"<a:b/>")
    assert not known.fit(b"<a:b/>" + END)


def test_a_sender_of_ever_new_shapes_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[bytes] = []
    monkeypatch.setattr(shapes, "_read_shape", lambda element: learned.append(element))
    known = Shapes(check)
    for number in range(4 * PRICE):
        known.learn(b"<a><b%d/></a>" % number)
        known.learn(b"<c%d/>" % (number // 2))
    assert len(learned) < 32


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MOST_NAMES", 4)
    monkeypatch.setattr(shapes, "PRICE", 1)
    known = Shapes(check)
    for number in range(20):
        for _ in range(2):
            known.learn(b"<a%d/>" % number)
    assert known.fit(b"<a19/>" + END)
    assert not known.fit(b"<a0/>" + END)


@pytest.mark.parametrize("inside", [b"x" * shapes.LONGEST, b"<b/>" * shapes.MOST_TAGS])
def test_long_elements_are_left_to_libxml2(inside: bytes) -> None:
    element = b"<a>%b</a>" % inside
    assert not knowing(element).fit(element + END)


def test_an_expression_has_no_more_than_its_length() -> None:
    slots = "".join(f' k{n}=""' for n in range(100)).encode()
    one, other, many = b"<a%b/>" % slots, b"<a%b />" % slots, b"<a%b l=''><b%b/></a>" % (slots, slots)
    known = knowing(one, many)
    assert known.fit(one + END)
    assert not known.fit(many + END)
    for _ in range(4):
        known.learn(other)
    assert known.fit(other + END)
    assert not known.fit(one + END)


def test_a_long_expression_costs_more() -> None:
    known = knowing(b"<a/>")
    cheap = MOST_CREDIT - known._credit
    slots = "".join(f' k{n}=""' for n in range(60)).encode()
    dear = MOST_CREDIT - knowing(b"<a%b/>" % slots)._credit
    assert (cheap, dear > 2 * PRICE) == (PRICE, True)
