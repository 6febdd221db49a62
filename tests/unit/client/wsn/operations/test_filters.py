"""Filters: what of them is understood, and what a content filter says about a payload."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn_client.wsn.operations.filters import (
    ContentFilter,
    Filter,
    compile_content,
    encode_filter,
    likely_dialect,
    parse_filter,
)
from hpwsn_client.wsn.soap.faults import (
    InvalidFilterFault,
    InvalidMessage,
    InvalidMessageContentExpressionFault,
    InvalidProducerPropertiesExpressionFault,
    InvalidTopicExpressionFault,
    SoapFault,
)
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_SIMPLE, DIALECT_XPATH, WSNT
from hpwsn_client.wsn.soap.version import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.xml import parse_xml
from hpwsn_client.wsn.topics.topic_expressions import parse_topic_expression
from tests.unit.client.wsn import strategies

PAYLOAD = parse_xml(
    """<e:event xmlns:e="urn:e" kind="car" xml:lang="zh"><e:speed>61.5</e:speed><e:vid>京B34C91</e:vid>
    <e:empty/><plain>x</plain><e:n>1</e:n><e:n>2</e:n></e:event>""".encode()
)


def parsed(inside: str) -> Filter:
    return parse_filter(parse_xml(f'<w:Filter xmlns:w="{WSNT}" xmlns:x="urn:x">{inside}</w:Filter>'.encode()))


def holds(expression: str, **prefixes: str) -> bool:
    scope = tuple(sorted({"e": "urn:e", **prefixes}.items()))
    return compile_content(ContentFilter(DIALECT_XPATH, expression, scope))(PAYLOAD)


def test_a_filter_is_read_whole() -> None:
    found = parsed(
        f"""<w:TopicExpression Dialect="{DIALECT_SIMPLE}">A:B</w:TopicExpression>
        <w:MessageContent Dialect="{DIALECT_XPATH}"> x:a &lt; 3 </w:MessageContent>
        <w:TopicExpression>x:C/D</w:TopicExpression>
        <w:MessageContent Dialect="{DIALECT_PREDICATES}">speed > 60</w:MessageContent>
        <w:ProducerProperties Dialect="{DIALECT_XPATH}">x:b</w:ProducerProperties>"""
    )
    assert found == Filter(
        (
            parse_topic_expression("A:B", DIALECT_SIMPLE, {}),
            parse_topic_expression("x:C/D", None, {"x": "urn:x"}),
        ),
        (
            ContentFilter(DIALECT_XPATH, "x:a < 3", (("x", "urn:x"),)),
            ContentFilter(DIALECT_PREDICATES, "speed > 60"),
        ),
        (ContentFilter(DIALECT_XPATH, "x:b", (("x", "urn:x"),)),),
    )


def test_an_empty_filter_wants_everything() -> None:
    assert parsed("") == parsed(" \n ") == Filter()


def test_content_without_a_dialect_is_xpath() -> None:
    assert parsed("<w:MessageContent>a</w:MessageContent>").content[0].dialect == DIALECT_XPATH


def test_unknown_filters_are_all_named_in_the_fault() -> None:
    with pytest.raises(InvalidFilterFault) as caught:
        parsed('<x:A/><w:MessageContent>a</w:MessageContent><B/><x:A/><w:Subscribe/><C xmlns="urn:c"/>')
    assert caught.value.unknown_filters == ("{urn:x}A", "B", f"{{{WSNT}}}Subscribe", "{urn:c}C")


def test_text_in_a_filter_is_against_the_schema() -> None:
    with pytest.raises(InvalidMessage, match="A:B"):
        parsed("A:B")


def test_a_bad_topic_in_a_filter_has_the_fault_for_topics() -> None:
    with pytest.raises(InvalidTopicExpressionFault):
        parsed("<w:TopicExpression>A::B</w:TopicExpression>")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("MessageContent", InvalidMessageContentExpressionFault),
        ("ProducerProperties", InvalidProducerPropertiesExpressionFault),
    ],
)
@pytest.mark.parametrize("inside", ["<x:a/>", "a<x:b/>", "a" * 4097])
def test_an_expression_that_is_no_text_or_too_long_has_the_fault_for_its_kind(
    name: str, fault: type[SoapFault], inside: str
) -> None:
    with pytest.raises(fault):
        parsed(f"<w:{name}>{inside}</w:{name}>")


def test_a_filter_has_at_most_256_parts() -> None:
    assert len(parsed("<w:TopicExpression>A</w:TopicExpression>" * 256).topics) == 256
    with pytest.raises(InvalidMessage, match="257 parts"):
        parsed("<w:TopicExpression>A</w:TopicExpression>" * 257)


def test_equal_filters_in_different_envelopes_are_equal() -> None:
    bare = f'<w:Filter xmlns:w="{WSNT}" xmlns:x="urn:x"><w:MessageContent>x:a</w:MessageContent></w:Filter>'
    wrapped = parse_xml(encode_envelope(SoapVersion.SOAP11, f'<b xmlns:z="urn:z">{bare}</b>'.encode()))
    assert parse_filter(wrapped[0][0][0]) == parse_filter(parse_xml(bare.encode()))


@given(strategies.filters)
def test_a_filter_is_read_back_from_its_element_alone_and_in_an_envelope(wanted: Filter) -> None:
    data = encode_filter(wanted)
    assert parse_filter(parse_xml(data)) == wanted
    assert parse_filter(parse_xml(encode_envelope(SoapVersion.SOAP11, data))[0][0]) == wanted


# Content


@pytest.mark.parametrize(
    "expression",
    [
        "e:speed > 60",
        "/e:event/e:speed > 60",
        "//e:vid = '京B34C91'",
        "self::e:event",
        ".",
        "/",
        "@kind = 'car' and not(@kind = 'bus')",
        "e:n = 2 and e:n = 1",
        "count(e:n) = 2",
        "true()",
        "'text'",
        "1",
        "-0.5",
        "e:empty",
        "plain",
        "e:n [ . = 2 ] and (e:speed div 2) > 30",
        "lang('zh')",
        "'z:none($v)' and string-length(e:vid) > 3",
        "e:speed/text() and node() and not(comment()) and child::e:n",
        "@xml:lang = 'zh'",
        "namespace-uri(.) = 'urn:e'",
    ],
)
def test_an_expression_that_is_true_as_a_boolean_selects_the_payload(expression: str) -> None:
    assert holds(expression) is True


@pytest.mark.parametrize(
    "expression",
    [
        "e:speed > 62",
        "e:none",
        "event",
        "/e:speed",
        "speed",
        "''",
        "0",
        "0 div 0",
        "false()",
        "e:n = 3",
        "parent::*",
    ],
)
def test_an_expression_that_is_false_as_a_boolean_does_not(expression: str) -> None:
    assert holds(expression) is False


def test_prefixes_are_those_of_the_filter_and_not_of_the_payload() -> None:
    assert holds("z:speed > 60", z="urn:e")
    assert not holds("e:speed > 60", e="urn:other")


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "",
            " ",
            "e:speed >",
            "((",
            "a b",
            "1) or (1",
            "a]",
            "//",
            "e:",
            "'open",
            "\0",
            "\ud800",
            "a[",
            "#",
        ),
        *("z:a", "true() or z:a", "//none[z:a]", "count(z:*)"),
        *("$v", "true() or $v", "//none[$v]", "unknown()", "//none[unknown()]", "true() or unknown (1)"),
        *(
            "e:f()",
            "//none[e:f(1)]",
            "re:test(., 'a')",
            "document('file:///etc/passwd')",
            "current()",
            "key('a', 1)",
        ),
        *("contains('a')", "count(1)", "'a' | 'b'", "(" * 5000, "a" * 4097, "-" * 4097),
    ],
)
def test_an_expression_that_cannot_be_evaluated_is_refused_when_it_is_compiled(expression: str) -> None:
    with pytest.raises(InvalidMessageContentExpressionFault):
        holds(expression)


def test_a_failure_at_run_time_is_no_match() -> None:
    failing = compile_content(ContentFilter(DIALECT_XPATH, "plain[contains(.)] or true()"))
    assert failing(PAYLOAD) is False
    assert failing(parse_xml(b"<other/>")) is True


@pytest.mark.parametrize("dialect", [DIALECT_PREDICATES, "urn:unknown", "", "http://www.w3.org/TR/xpath20"])
def test_a_content_dialect_that_is_not_offered_is_refused(dialect: str) -> None:
    with pytest.raises(InvalidMessageContentExpressionFault, match="dialect"):
        compile_content(ContentFilter(dialect, "true()"))


@pytest.mark.parametrize("scope", [(("e", ""),), (("", "urn:e"),), (("e", "\0"),)])
def test_a_scope_that_cannot_be_is_refused(scope: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(InvalidMessageContentExpressionFault):
        compile_content(ContentFilter(DIALECT_XPATH, "e:a", scope))


@given(st.text(max_size=30) | st.text("ae:/()[]'\"$@*.|1 =", max_size=15))
def test_any_text_is_a_filter_or_a_fault(expression: str) -> None:
    try:
        selects = compile_content(ContentFilter(DIALECT_XPATH, expression, (("e", "urn:e"),)))
    except InvalidMessageContentExpressionFault as fault:
        assert fault.reason
    else:
        assert selects(PAYLOAD) in (True, False)


@pytest.mark.parametrize("expression", ["a" * 4096, "a " * 2048, "'" * 4095, "a:" * 2048, "//a" * 1365])
def test_a_hostile_text_is_compiled_or_refused_at_once(expression: str) -> None:
    try:
        compile_content(ContentFilter(DIALECT_XPATH, expression))
    except InvalidMessageContentExpressionFault as fault:
        assert fault.reason


@pytest.mark.parametrize(
    ("expression", "dialect"),
    [
        ("speed > 60", DIALECT_PREDICATES),
        ("speed > +1.5e+3 and not (a = 'x/y@[z]' or b = \"p:q\")", DIALECT_PREDICATES),
        ("time >= 2026-01-31T12:00:00Z", DIALECT_PREDICATES),
        ("`a/b` like '%contains(%'", DIALECT_PREDICATES),
        ("within(x, y, .5, 0., 1, 2) and has(tags, 'a') and exists(n)", DIALECT_PREDICATES),
        ("not(speed > 60) and lane in (1, 2)", DIALECT_PREDICATES),
        ("name = 'it\\'s' and a > 1", DIALECT_PREDICATES),
        ("/car/speed > 60", DIALECT_XPATH),
        ("@speed > 60", DIALECT_XPATH),
        (". > 30", DIALECT_XPATH),
        ("starts-with(., 'x')", DIALECT_XPATH),
        ("p:speed > 60", DIALECT_XPATH),
        ("child::speed > 60", DIALECT_XPATH),
        ("contains (name, 'x')", DIALECT_XPATH),
        ("* > 2", DIALECT_XPATH),
        ("speed[2]", DIALECT_XPATH),
    ],
)
def test_an_expression_without_a_dialect_is_xpath_where_only_xpath_has_its_parts(
    expression: str, dialect: str
) -> None:
    assert likely_dialect(expression) == dialect


def test_predicates_carry_no_prefixes() -> None:
    text = f'<w:Filter xmlns:w="{WSNT}" xmlns:a="urn:a"><w:MessageContent Dialect="{DIALECT_PREDICATES}">'
    wanted = parse_filter(parse_xml(f"{text}a:b > 1</w:MessageContent></w:Filter>".encode()))
    assert wanted.content == (ContentFilter(DIALECT_PREDICATES, "a:b > 1"),)
