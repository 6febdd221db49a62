"""The hardened parser at its edges, and elements that are cut out of their document."""

import re
import threading
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from hpwsn_client.wsn.soap.faults import InvalidMessage, MalformedXml, SoapFault, TooLarge
from hpwsn_client.wsn.soap.xml import (
    DEFAULT_LIMITS,
    NCNAME,
    Limits,
    encode_element,
    escape,
    escape_attribute,
    parse_xml,
    prefixed,
    qname_text,
    replace_illegal,
)

XML_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


# NameStartChar without the colon, and what NameChar has beyond it, as XML 1.0 lists them.
STARTS = (
    "AZ", "__", "az", "\xc0\xd6", "\xd8\xf6", "\xf8\u02ff", "\u0370\u037d", "\u037f\u1fff", "\u200c\u200d",
    "\u2070\u218f", "\u2c00\u2fef", "\u3001\ud7ff", "\uf900\ufdcf", "\ufdf0\ufffd", "\U00010000\U000effff",
)  # fmt: skip
INNERS = ("--", "..", "09", "\xb7\xb7", "\u0300\u036f", "\u203f\u2040")


def nested(levels: int) -> bytes:
    return b"<a>" * levels + b"</a>" * levels


def nested_around_empty(levels: int) -> bytes:
    return b"<a>" * (levels - 1) + b"<a/>" + b"</a>" * (levels - 1)


def crowded(attributes: int) -> bytes:
    return b"<a" + b"".join(b' a%d="="' % i for i in range(attributes)) + b"/>"


def canonical(element: etree._Element) -> bytes:
    return etree.tostring(element, method="c14n", exclusive=True, with_tail=False)


class TestEncodings:
    @pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
    @pytest.mark.parametrize(
        ("codec", "name"),
        [
            ("utf-8", "UTF-8"),
            ("utf-8-sig", "utf-8"),
            ("latin-1", "ISO-8859-1"),
            ("iso8859-15", "iso-8859-15"),
            ("cp1252", "Windows-1252"),
            ("utf-16", "UTF-16"),
            ("utf-16-le", "UTF-16LE"),
            ("utf-16-be", "UTF-16BE"),
        ],
    )
    def test_charset_of_http_is_taken(self, codec: str, name: str, declared: bool) -> None:
        prolog = f'<?xml version="1.0" encoding="{name}"?>' if declared else ""
        assert parse_xml(f"{prolog}<a>é</a>".encode(codec), charset=name).text == "é"

    @pytest.mark.parametrize(
        ("codec", "name"),
        [
            ("utf-8", "utf-8"),
            ("latin-1", "latin1"),
            ("cp1252", "cp1252"),
            ("utf-16", "utf-16"),
            ("utf-16-be", "utf-16"),
        ],
    )
    def test_declaration_is_taken_without_a_charset(self, codec: str, name: str) -> None:
        assert parse_xml(f"<?xml version='1.0' encoding='{name}'?><a>é</a>".encode(codec)).text == "é"

    @pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
    def test_unicode_needs_neither_charset_nor_declaration(self, codec: str) -> None:
        assert parse_xml("<a>京B34C91</a>".encode(codec)).text == "京B34C91"

    def test_charset_of_http_wins_over_the_declaration(self) -> None:
        data = '<?xml version="1.0" encoding="utf-8"?><a>é</a>'.encode("latin-1")
        assert parse_xml(data, charset='"ISO-8859-1"').text == "é"

    def test_byte_order_mark_wins_over_charset(self) -> None:
        assert parse_xml("<a>é</a>".encode("utf-16"), charset="utf-8").text == "é"

    def test_utf_16_declared_in_single_bytes_is_utf_8(self) -> None:
        assert parse_xml("<?xml version='1.0' encoding='utf-16'?><a>é</a>".encode()).text == "é"

    @pytest.mark.parametrize(
        "name", ["utf-7", "utf-32", "ebcdic-cp-us", "gb18030", "hex", "", "x" * 9999, "\0"]
    )
    def test_other_encodings_are_refused_by_name(self, name: str) -> None:
        with pytest.raises(MalformedXml, match="not accepted; send UTF-8"):
            parse_xml(f"<?xml version='1.0' encoding='{name}'?><a/>".encode())
        if name:
            with pytest.raises(MalformedXml, match="not accepted; send UTF-8"):
                parse_xml(b"<a/>", charset=name)

    @pytest.mark.parametrize(
        ("data", "charset"),
        [
            (b"<a>\xe9</a>", None),
            (b"<a>\xc0\x80</a>", None),
            (b"<a>\xed\xa0\x80</a>", None),
            (b"<a>\x81</a>", "windows-1252"),
            ("<a>é</a>".encode("utf-16") + b"\0", None),
            (b"\xff\xfe<\0a\0>\0\x00\xd8<\0/\0a\0>\0", None),
            (b"\xff\xfe\0\0<\0\0\0a\0\0\0/\0\0\0>\0\0\0", None),
        ],
    )
    def test_bytes_that_are_not_of_the_encoding_are_refused(self, data: bytes, charset: str | None) -> None:
        with pytest.raises(MalformedXml):
            parse_xml(data, charset=charset)


class TestDocumentTypes:
    @pytest.mark.parametrize(
        "doctype",
        [
            "<!DOCTYPE a>",
            '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd">',
            '<!DOCTYPE a [<!ENTITY x "y">]>',
            '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        ],
    )
    @pytest.mark.parametrize(
        "before", ["", " \r\n", "<!-- c -->", "<?p <!-- ?>", "<!-- <a> --><?p?>\n<!---->"]
    )
    @pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
    def test_document_type_is_refused_wherever_it_can_stand(
        self, doctype: str, before: str, codec: str
    ) -> None:
        if before.startswith(" ") and codec in ("utf-16-le", "utf-16-be"):
            before = "<?p?>" + before
        with pytest.raises(MalformedXml, match="document type declaration"):
            parse_xml(f"{before}{doctype}<a>x</a>".encode(codec))

    def test_document_type_after_a_declared_encoding_is_refused(self) -> None:
        for name in ("latin-1", "windows-1252", "us-ascii", "utf-16"):
            with pytest.raises(MalformedXml, match="document type declaration"):
                parse_xml(f'<?xml version="1.0" encoding="{name}"?><!DOCTYPE a><a/>'.encode())

    def test_text_that_looks_like_a_document_type_is_text(self) -> None:
        root = parse_xml(b"<!-- <!DOCTYPE a> --><a><![CDATA[<!DOCTYPE a>]]><!-- <!DOCTYPE b> --></a>")
        assert root.text == "<!DOCTYPE a>"

    @pytest.mark.parametrize("entity", ["nbsp", "x", "xxe"])
    def test_entities_that_xml_does_not_define_are_refused(self, entity: str) -> None:
        with pytest.raises(MalformedXml, match=f"Entity '{entity}' not defined"):
            parse_xml(f"<a>&{entity};</a>".encode())

    def test_the_five_entities_of_xml_and_character_references_are_read(self) -> None:
        assert parse_xml(b"<a>&lt;&gt;&amp;&quot;&apos;&#233;</a>").text == "<>&\"'é"


class TestBounds:
    @pytest.mark.parametrize("shape", [nested, nested_around_empty])
    @pytest.mark.parametrize("depth", [1, 2, 31, 32, 255, 256, 257, 500, 2048])
    def test_depth_is_bounded_exactly(self, shape, depth: int) -> None:  # type: ignore[no-untyped-def]
        limits = Limits(depth=depth)
        assert parse_xml(shape(depth), limits).tag == "a"
        with pytest.raises(MalformedXml, match=f"deeper than the {depth} levels accepted"):
            parse_xml(shape(depth + 1), limits)

    def test_depth_is_256_unless_told_otherwise(self) -> None:
        assert parse_xml(nested(256)).tag == "a"
        for levels in (257, 2049, 10_000, 1_000_000):
            with pytest.raises(
                MalformedXml, match="nested deeper than the 256 levels accepted; flatten them"
            ):
                parse_xml(nested(levels))

    def test_depth_is_bounded_in_a_document_too_large_for_the_ordinary_parser(self) -> None:
        filler = b"<f>" + b"x" * 10_000_000 + b"</f>"
        assert len(parse_xml(b"<r>" + filler + nested(255) + b"</r>")) == 2
        with pytest.raises(MalformedXml, match="deeper than the 256 levels"):
            parse_xml(b"<r>" + filler + nested(256) + b"</r>")

    def test_a_wide_document_is_not_deep(self) -> None:
        assert len(parse_xml(b"<r>" + b"<a><b/></a>" * 5000 + b"</r>")) == 5000

    def test_attributes_are_bounded_exactly(self) -> None:
        assert len(parse_xml(crowded(256)).attrib) == 256
        for number in (257, 300_000):
            with pytest.raises(MalformedXml, match="more than the 256 attributes and namespaces"):
                parse_xml(b"<r>" + crowded(number) + b"</r>")

    @pytest.mark.parametrize("limit", [1, 2, 1000])
    def test_attributes_have_a_setting(self, limit: int) -> None:
        tag = b"<a" + b"".join(b"\n%c%c = '>'" % (97 + i // 26, 97 + i % 26) for i in range(min(limit, 676)))
        assert parse_xml(tag + b"></a>", Limits(attributes=limit)).tag == "a"
        with pytest.raises(MalformedXml, match="attributes"):
            parse_xml(crowded(limit + 1), Limits(attributes=limit))

    def test_namespaces_count_as_attributes(self) -> None:
        declarations = b"".join(b' xmlns:p%d="u"' % i for i in range(200))
        assert parse_xml(b"<a" + declarations + b"/>").tag == "a"
        with pytest.raises(MalformedXml, match="attributes"):
            parse_xml(b"<a" + declarations + declarations.replace(b"xmlns:", b"") + b"/>")

    def test_attributes_in_character_data_are_only_text(self) -> None:
        text = crowded(300)
        for before, after in ((b"<![CDATA[", b"]]>"), (b"<!--", b"-->"), (b"<?p ", b"?>")):
            assert parse_xml(b"<a>" + before + text + after + b"</a>").tag == "a"
        with pytest.raises(MalformedXml, match="attributes"):
            parse_xml(b"<a><![CDATA[<!--]]>" + text + b"<!-- --></a>")

    def test_text_with_many_equal_signs_is_only_text(self) -> None:
        assert parse_xml(b"<a>" + b' a="b"' * 5000 + b"</a>").tag == "a"

    def test_size_is_bounded_exactly(self) -> None:
        data = b"<a>12345</a>"
        assert parse_xml(data, Limits(body=len(data))).text == "12345"
        with pytest.raises(TooLarge, match="has 12 bytes; at most 11 are accepted") as caught:
            parse_xml(data, Limits(body=len(data) - 1))
        assert caught.value.status == 413

    def test_twenty_megabytes_are_too_large(self) -> None:
        with pytest.raises(TooLarge, match="20000000 bytes"):
            parse_xml(b"<a>".ljust(20_000_000))

    def test_one_text_or_attribute_may_fill_the_whole_body(self) -> None:
        room = DEFAULT_LIMITS.body - len("<a></a>")
        assert len(parse_xml(b"<a>" + b"x" * room + b"</a>").text or "") == room
        assert len(parse_xml(b'<a b="' + b"x" * (room - 8) + b'"/>').get("b") or "") == room - 8

    @pytest.mark.parametrize(
        "unit",
        [b"<!--", b"<?", b"<![CDATA[", b"<a ", b"<a b='", b"<", b"&", b"]]>", b" encoding", b"<!---->"],
    )
    @pytest.mark.parametrize("before", [b"", b"<?xml", b"<a>", crowded(300)])
    def test_repetition_without_end_is_refused_in_linear_time(self, unit: bytes, before: bytes) -> None:
        with pytest.raises(SoapFault):
            parse_xml(before + unit * 300_000)

    @pytest.mark.parametrize(
        "limits", [{"depth": 0}, {"depth": 2049}, {"body": 0}, {"attributes": -1}, {"messages": 0}]
    )
    def test_limits_that_cannot_be_kept_are_refused(self, limits: dict[str, int]) -> None:
        with pytest.raises(ValueError, match=f"limit {next(iter(limits))} = "):
            Limits(**limits)


class TestTree:
    def test_comments_and_instructions_leave_the_text_joined(self) -> None:
        root = parse_xml(b"<?p?><!--x--><a>1<!-- c -->2<?p?>3<b/>4<!---->5<![CDATA[<6>]]></a><!--y-->")
        assert (root.text, root[0].tail, len(root)) == ("123", "45<6>", 1)

    @pytest.mark.parametrize(
        "data",
        [b"", b" ", b"x", b"<a>", b"<a></b>", b"<a/><b/>", b"<a b=1/>", b"<a b='' b=''/>", b"<p:a/>",
         b"<a>\x01</a>", b"<a>&#1;</a>", b"{}", b"\n<?xml version='1.0'?><a/>"],
    )  # fmt: skip
    def test_what_is_not_xml_is_refused_with_status_400(self, data: bytes) -> None:
        with pytest.raises(MalformedXml, match=r"^the message is not well-formed XML: .*line") as caught:
            parse_xml(data)
        assert caught.value.status == 400
        assert "<string>" not in caught.value.reason

    def test_threads_parse_at_once(self) -> None:
        results: list[int] = []

        def work() -> None:
            results.extend(len(parse_xml(b"<r>" + b"<a/>" * i + b"</r>")) for i in range(200))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == sorted(list(range(200)) * 8)

    @given(
        st.binary(max_size=200), st.sampled_from([None, "utf-8", "latin-1", "cp1252", "utf-16", "utf-16le"])
    )
    def test_garbage_gives_nothing_but_soap_faults(self, data: bytes, charset: str | None) -> None:
        for candidate in (data, b"<a>" + data + b"</a>", b"<" + data + b"/>"):
            with suppress(SoapFault):
                parse_xml(candidate, charset=charset)

    @given(st.text(max_size=20))
    def test_any_charset_gives_nothing_but_soap_faults(self, charset: str) -> None:
        with suppress(MalformedXml):
            assert parse_xml(b"<a/>", charset=charset).tag == "a"


PREFIXES = {None: "urn:default", "p": "urn:p", "q": "urn:q", "http": "urn:h"}


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    """An element with declarations, names, texts and QNames that refer to declarations further out."""
    names = draw(st.lists(st.sampled_from(["p", "q", "http"]), unique=True, max_size=2))
    declared = "".join(f' xmlns:{name}="urn:{name}:{draw(st.integers(0, 1))}"' for name in names)
    default = draw(st.sampled_from(["", "", ' xmlns=""', ' xmlns="urn:default"', ' xmlns="urn:other"']))
    prefix = draw(st.sampled_from(["", "p:", "q:"]))
    attribute = draw(st.sampled_from(["", ' b="q:x"', ' p:b="1"', " b='http:&quot;'"]))
    text = draw(st.sampled_from(["", "p:x", "q:y &amp; p", "http://h", "t"]))
    children = draw(st.lists(elements(depth=depth - 1), max_size=2)) if depth else []
    return f"<{prefix}e{declared}{default}{attribute}>{text}{''.join(children)}</{prefix}e>{text}"


def whole(inner: str) -> etree._Element:
    return parse_xml(
        f'<r xmlns="urn:r" xmlns:p="urn:p" xmlns:q="urn:q" xmlns:http="urn:h">{inner}</r>'.encode()
    )


class TestEncodeElement:
    @given(elements())
    @example('<e xmlns="" p:b="1"><e/></e>')
    def test_cut_out_element_means_the_same(self, inner: str) -> None:
        for element in whole(inner).iter():
            cut = parse_xml(encode_element(element))
            assert canonical(cut) == canonical(element)
            for copy, original in zip(cut.iter(), element.iter(), strict=True):
                for value in (original.text or "", *original.attrib.values()):
                    prefix = value.partition(":")[0]
                    if prefix in original.nsmap and ":" in value:
                        assert copy.nsmap[prefix] == original.nsmap[prefix]

    @given(elements())
    def test_cutting_out_again_changes_nothing(self, inner: str) -> None:
        once = encode_element(whole(inner)[0])
        assert encode_element(parse_xml(once)) == once
        wrapped = b'<wsnt:m xmlns:wsnt="urn:w" xmlns:soap="urn:s">' + once + b"</wsnt:m>"
        assert encode_element(parse_xml(wrapped)[0]) == once

    def test_only_namespaces_that_may_be_used_are_declared(self) -> None:
        root = parse_xml(
            b'<s:r xmlns:s="urn:s" xmlns:p="urn:p" xmlns:q="urn:q&amp;"><a t="p:x http:"/>tail</s:r>'
        )
        assert encode_element(root[0]) == b'<a xmlns:p="urn:p" xmlns:q="urn:q&amp;" t="p:x http:"/>'

    def test_output_is_utf_8_without_declaration_or_tail(self) -> None:
        assert encode_element(parse_xml("<r><a>京</a>tail</r>".encode())[0]) == "<a>京</a>".encode()


class TestText:
    @given(XML_TEXT)
    @example("\r\n\t ]]> \"'&<>")
    def test_escaped_text_reads_back(self, text: str) -> None:
        assert (parse_xml(f"<a>{escape(text)}</a>".encode()).text or "") == text
        assert parse_xml(f'<a b="{escape_attribute(text)}"/>'.encode()).get("b") == text
        assert parse_xml(f"<a b='{escape_attribute(text)}'/>".encode()).get("b") == text

    @pytest.mark.parametrize("character", ["\0", "\x0b", "\x1f", "\ud800", "\ufffe", "\uffff"])
    def test_characters_that_xml_lacks_are_refused_or_replaced(self, character: str) -> None:
        for function in (escape, escape_attribute):
            with pytest.raises(ValueError, match=f"U\\+{ord(character):04X} is not allowed in XML"):
                function(f"a{character}")
        assert replace_illegal(f"a{character}b") == "a\ufffdb"

    def test_qname_takes_its_namespace_from_where_it_stands(self) -> None:
        element = parse_xml(b'<r xmlns:p="urn:out"><a xmlns:p="urn:in" xmlns="urn:d"/></r>')[0]
        assert qname_text(element, " p:x\n") == "{urn:in}x"
        assert qname_text(element, "x.y-1") == "{urn:d}x.y-1"
        assert qname_text(element.getparent(), "é") == "é"  # type: ignore[arg-type]
        assert qname_text(element, "xml:lang") == "{http://www.w3.org/XML/1998/namespace}lang"

    @pytest.mark.parametrize(
        "text", [None, "", "a b", "1a", ":a", "p:", "p:a:b", "{urn:x}a", "nobody:a", "²a", "p:\0"]
    )
    def test_qname_that_means_nothing_is_invalid(self, text: str | None) -> None:
        with pytest.raises(InvalidMessage):
            qname_text(parse_xml(b'<a xmlns:p="urn:p"/>'), text)

    def test_a_name_is_of_the_characters_that_xml_lists_at_the_edges_of_each_range(self) -> None:
        edges = {ord(edge) + step for range_ in STARTS + INNERS for edge in range_ for step in (-1, 0, 1)}
        is_name = re.compile(NCNAME).fullmatch
        for character in map(chr, edges):
            starts = any(low <= character <= high for low, high in STARTS)
            inner = starts or any(low <= character <= high for low, high in INNERS)
            assert (is_name(character) is not None, is_name(f"a{character}") is not None) == (starts, inner)

    def test_prefixed_name_comes_with_its_declaration(self) -> None:
        assert prefixed("a") == ("a", "")
        assert prefixed("{urn:x&y}a") == ("ns:a", ' xmlns:ns="urn:x&amp;y"')
        assert prefixed("{http://www.w3.org/2005/08/addressing}To")[0] == "wsa:To"


@pytest.mark.parametrize(
    "wrong",
    [b"<u:x/>", b"<x u:k='1'/>", b"<x xmlns:p='urn:u' xmlns:q='urn:u' p:k='1' q:k='2'/>", b"<xml:y:z/>"],
)
@pytest.mark.parametrize("later", [b"<b xml:space='odd'/>", b"<b xmlns='relative'/>"])
def test_what_is_wrong_with_namespaces_is_not_hidden_by_a_later_warning(wrong: bytes, later: bytes) -> None:
    with pytest.raises(MalformedXml, match=r"^the message is not well-formed XML: .*line 1"):
        parse_xml(b"<a>%b%b</a>" % (wrong, later))
    assert len(parse_xml(b"<a>%b</a>" % later)) == 1
