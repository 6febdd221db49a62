"""The hardened XML parser and the encoding of self-contained elements; only this module calls libxml2.

Rejects document type declarations, and so all entities except the five predefined ones; encodings other than
UTF-8, US-ASCII, Latin-1, Latin-9, windows-1252 and UTF-16; and documents that exceed the Limits. Comments and
processing instructions are removed unless the caller keeps them (hpwsn_client.wsn.soap.payload_xml).
"""

import codecs
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from lxml import etree

from hpwsn_client.wsn.soap.names import PREFIXES, XML_NS
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage, MalformedXml, TooLarge

# libxml2 never builds a deeper tree.
_DEEPEST = 2048
# Below these values, libxml2's own limits (10,000,000 bytes of text, 256 levels) are never reached before
# ours. Above them the parser needs huge_tree. That is safe, because size and depth are limited and DTDs are
# rejected.
_ORDINARY_BYTES = 10_000_000
_ORDINARY_DEPTH = 256
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a message: bytes, nesting depth, attributes of an element, messages of a Notify."""

    body: int = 16 * 1024 * 1024
    depth: int = 256
    attributes: int = 256
    messages: int = 10_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"limit {name} = {getattr(self, name)}: must be at least 1")
        if self.depth > _DEEPEST:
            raise ValueError(f"limit depth = {self.depth}: must be at most {_DEEPEST}")


DEFAULT_LIMITS = Limits()
STORED_LIMITS = Limits(body=2**31 - 1, attributes=2**31 - 1, messages=2**31 - 1)
"""Limits for stored messages, which were accepted before and may have grown by escapes and declarations."""


class _Parsers(threading.local):
    """One set of parsers for each thread, because an lxml parser handles one document at a time."""

    def __init__(self) -> None:
        self._made: dict[tuple[bool, bool], etree.XMLParser] = {}

    def get(self, huge: bool, comments: bool) -> etree.XMLParser:
        """The parser with these options, created on first use."""
        made = self._made.get((huge, comments))
        if made is None:
            made = self._made[huge, comments] = _parser(huge, comments)
        return made


def _parser(huge: bool, comments: bool) -> etree.XMLParser:
    return etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        remove_comments=not comments,
        remove_pis=not comments,
        collect_ids=False,
        huge_tree=huge,
    )


_parsers = _Parsers()


def parse_xml(
    data: bytes, limits: Limits = DEFAULT_LIMITS, charset: str | None = None, *, comments: bool = False
) -> etree._Element:
    """Parse one untrusted document; `charset` is that of the HTTP header, None if it has none.

    With `comments`, the tree keeps comments and processing instructions.
    """
    if len(data) > limits.body:
        raise TooLarge(
            f"the message has {len(data)} bytes; at most {limits.body} are accepted, so send less at once"
        )
    text = _to_utf8(data, charset)
    _reject_doctype(text)
    return _parse_within(text, limits, comments)


def parse_plain(text: bytes, limits: Limits) -> etree._Element:
    """Parse one document in UTF-8 that does not contain `<!`, and so no document type declaration."""
    if len(text) > limits.body:
        raise TooLarge(
            f"the message has {len(text)} bytes; at most {limits.body} are accepted, so send less at once"
        )
    return _parse_within(text, limits)


_MARK = "_\u00b7".encode()
_BETWEEN = b"</%b><%b>" % (_MARK, _MARK)


def may_hold_mark(data: bytes) -> bool:
    """Whether the bytes contain the element name that parse_contents uses as a separator."""
    return b"\xb7" in data and _MARK in data


def parse_contents(
    contents: Sequence[bytes], limits: Limits, levels: int, declarations: bytes, header: bytes
) -> etree._Element:
    """Check that each content is one element, and return an element with the parsed header.

    The contents come from a document without `<!`, in which each had at most `levels` ancestors.
    """
    head = b"<%b%b>%b</%b>" % (_MARK, declarations, header, _MARK)
    inner = _BETWEEN.join(contents)
    text = b"<%b>%b<%b>%b</%b></%b>" % (_MARK, head, _MARK, inner, _MARK, _MARK)
    _check_attributes(text, limits.attributes)
    root = _parse(text, limits)
    if _has_others(root):
        raise MalformedXml("a message is not one element")
    longest = max(len(head), max(map(len, contents)))
    # Each level takes at least seven bytes, and the text here has two more levels.
    if longest > 7 * (limits.depth - levels) and _deeper(root, limits.depth - levels + 2):
        raise _too_deep(limits)
    return root[0]


def parse_header(header: bytes, limits: Limits, levels: int, declarations: bytes) -> etree._Element:
    """The element with the parsed header, as parse_contents returns it, when there are no contents."""
    text = b"<%b%b>%b</%b>" % (_MARK, declarations, header, _MARK)
    _check_attributes(text, limits.attributes)
    root = _parse(text, limits)
    if len(text) > 7 * (limits.depth - levels) and _deeper(root, limits.depth - levels + 1):
        raise _too_deep(limits)
    return root


_has_others = etree.XPath("boolean(*[position() > 1][text() or count(*) != 1])")


def parse_content(element: bytes, limits: Limits, levels: int) -> None:
    """Check one element from a document without `<!`, in which it had `levels` ancestors."""
    _check_attributes(element, limits.attributes)
    root = _parse(element, limits)
    if len(element) > 7 * (limits.depth - levels) and _deeper(root, limits.depth - levels):
        raise _too_deep(limits)


class _NoTree:
    """A parser target that takes no events, so that libxml2 builds nothing."""

    def close(self) -> None:
        """The document is complete."""


def check_well_formed(text: bytes, limits: Limits) -> None:
    """Check a document in UTF-8 without `<!`, whatever its size, without a tree; depth is not checked."""
    if len(text) > limits.body:
        raise TooLarge(
            f"the message has {len(text)} bytes; at most {limits.body} are accepted, so send less at once"
        )
    _check_attributes(text, limits.attributes)
    parser = etree.XMLParser(
        target=cast(Any, _NoTree()), encoding="utf-8", resolve_entities=False, no_network=True, huge_tree=True
    )
    try:
        # Pieces: the interpreter lock is free while libxml2 works on one.
        for at in range(0, len(text), _PIECE):
            parser.feed(text[at : at + _PIECE])
        parser.close()
    except etree.XMLSyntaxError as error:
        raise MalformedXml(f"the message is not well-formed XML: {_one_line(error)}") from None
    for entry in parser.feed_error_log.filter_from_errors():
        raise MalformedXml(f"the message is not well-formed XML: {entry.message}, line {entry.line}")


def _parse_within(text: bytes, limits: Limits, comments: bool = False) -> etree._Element:
    _check_attributes(text, limits.attributes)
    root = _parse(text, limits, comments)
    # A level takes at least <a></a>, so most messages are too short to exceed the depth.
    if len(text) > 7 * limits.depth and _deeper(root, limits.depth):
        raise _too_deep(limits)
    return root


def _parse(text: bytes, limits: Limits, comments: bool = False) -> etree._Element:
    ordinary = len(text) < _ORDINARY_BYTES and limits.depth <= _ORDINARY_DEPTH
    parser = _parsers.get(not ordinary, comments)
    try:
        root = etree.fromstring(text, parser)
        if len(parser.error_log):
            _reject_unreported_errors(parser)
        return root
    except etree.XMLSyntaxError as error:
        if "Excessive depth" in str(error):
            raise _too_deep(limits) from None
        fault = MalformedXml(f"the message is not well-formed XML: {_one_line(error)}")
        fault.line, fault.column = error.position
        raise fault from None


def _reject_unreported_errors(parser: etree.XMLParser) -> None:
    """Reject an unbound prefix that lxml does not report, because it reports only the last message.

    The last message may be a mere warning, such as for a wrong xml:space or a relative namespace URI.
    """
    for entry in parser.error_log.filter_from_errors():
        raise MalformedXml(f"the message is not well-formed XML: {entry.message}, line {entry.line}")


_PLACE = re.compile(r" \(<string>, line [0-9]+\)$")


def _one_line(error: etree.XMLSyntaxError) -> str:
    return _PLACE.sub("", " ".join(str(error).split()))


def _too_deep(limits: Limits) -> MalformedXml:
    return MalformedXml(f"elements are nested deeper than the {limits.depth} levels accepted; flatten them")


def _deeper(root: etree._Element, depth: int) -> bool:
    # Test a short path first: few messages are deeper, and a long path costs time even without a match.
    try:
        return bool(_path(min(depth, 31) + 1)(root) and _path(depth + 1)(root))
    except etree.XPathError:
        # libxml2 visits at most ten million elements of one level, which need a size limit above 40 MB.
        raise TooLarge("the message has more elements than can be checked; send less at once") from None


@lru_cache(maxsize=8)
def _path(levels: int) -> etree.XPath:
    return etree.XPath(f"boolean({'/*' * levels})")


_PROLOG = re.compile(rb"(?:\s++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)


def _reject_doctype(text: bytes) -> None:
    prolog = _PROLOG.match(text)
    if prolog and text.startswith(b"<!DOCTYPE", prolog.end()):
        raise MalformedXml("the message has a document type declaration, which SOAP forbids; leave it out")


# An unclosed section ends with the text; otherwise many of them would each be searched to the end.
_NOT_TAGS = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)", re.DOTALL)


def _check_attributes(text: bytes, limit: int) -> None:
    """Reject a start tag with too many attributes before libxml2 compares each with all others."""
    if _has_too_many_attributes(text, limit) and _has_too_many_attributes(_NOT_TAGS.sub(b"", text), limit):
        raise MalformedXml(
            f"an element has more than the {limit} attributes and namespaces accepted; use fewer"
        )


def _has_too_many_attributes(text: bytes, limit: int) -> bool:
    # Such a tag is at least this long and contains no other "<", so skip to the last "<" within that length.
    length = len("<a") + len(' a=""') * (limit + 1)
    at = text.find(b"<")
    while 0 <= at <= len(text) - length:
        following = text.rfind(b"<", at + 1, at + length)
        if following < 0:
            if _too_many_attributes(limit).match(text, at):
                return True
            following = text.find(b"<", at + 1)
        at = following
    return False


@lru_cache(maxsize=8)
def _too_many_attributes(limit: int) -> re.Pattern[bytes]:
    attribute = rb"""\s++[^\s"'<>=/]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+')"""
    return re.compile(rb"""<[^\s"'<>=/!?]++(?:%s){%d}""" % (attribute, limit + 1))


_CHARSETS = {
    **dict.fromkeys(("utf-8", "utf8", "us-ascii", "ascii"), "utf-8"),
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "latin-1", "latin1", "l1"), "latin-1"),
    **dict.fromkeys(("iso-8859-15", "iso8859-15", "latin-9", "latin9"), "iso8859-15"),
    **dict.fromkeys(("windows-1252", "cp1252", "cp-1252"), "cp1252"),
    **dict.fromkeys(("utf-16", "utf16", "utf-16be", "utf-16-be", "ucs-2", "iso-10646-ucs-2"), "utf-16-be"),
    **dict.fromkeys(("utf-16le", "utf-16-le"), "utf-16-le"),
}
_DECLARATION = re.compile(rb"""<\?xml\s[^<>]*?\sencoding\s*=\s*["']([^"'<>]*)["']""")


def _to_utf8(data: bytes, charset: str | None) -> bytes:
    """The document in UTF-8; its first bytes give its encoding, else HTTP, else its declaration."""
    if data.startswith(codecs.BOM_UTF8):
        return data[3:]
    encoding = _signature(data) or _named(data, charset)
    if encoding == "utf-8":
        return data
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeDecodeError as error:
        reason = f"the message is not in {encoding}, as declared: {error.reason} at byte {error.start}"
        raise MalformedXml(reason) from None


def _signature(data: bytes) -> str | None:
    if data[:2] in (b"\xff\xfe", b"<\0"):
        return "utf-16-le"
    if data[:2] in (b"\xfe\xff", b"\0<"):
        return "utf-16-be"
    return None


def _named(data: bytes, charset: str | None) -> str:
    if charset:
        return _known(charset)
    declaration = _DECLARATION.match(data) if data.startswith(b"<?xml") else None
    if declaration is None:
        return "utf-8"
    encoding = _known(declaration[1].decode("latin-1"))
    # A UTF-16 declaration in single bytes means UTF-8: .NET clients serialize to a string and send UTF-8.
    return "utf-8" if encoding.startswith("utf-16") else encoding


def _known(charset: str) -> str:
    try:
        return _CHARSETS[charset.strip(" \"'").lower().replace("_", "-")]
    except KeyError:
        raise MalformedXml(f"encoding {charset[:40]!r} is not accepted; send UTF-8") from None


_PLAIN_URI = re.compile(r"[A-Za-z0-9:/.#?_~-]+")


def encode_element(element: etree._Element) -> bytes:
    """Encode an element as self-contained XML, with every namespace in scope that it may use.

    An ancestor's prefix is left out only if it appears before no colon in the element, not even in text.
    """
    data = etree.tostring(element, encoding="utf-8", xml_declaration=False, with_tail=False)
    parent = element.getparent()
    if parent is None:
        return data
    for prefix, uri in parent.nsmap.items():
        if prefix is not None and not _mentions(data, prefix) and _PLAIN_URI.fullmatch(uri):
            data = data.replace(f' xmlns:{prefix}="{uri}"'.encode(), b"", 1)
    return data


def _mentions(data: bytes, prefix: str) -> bool:
    colon = f"{prefix}:".encode()
    return colon in data and re.search(rb"(?<![\w.\x80-\xff-])" + re.escape(colon), data) is not None


_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Escape text for the content of an element; ValueError if XML does not allow a character."""
    if len(text) > _PIECE:
        # In pieces, between which other threads get the interpreter lock.
        return "".join([escape(text[at : at + _PIECE]) for at in range(0, len(text), _PIECE)])
    illegal = _ILLEGAL.search(text)
    if illegal:
        raise ValueError(f"character U+{ord(illegal[0]):04X} is not allowed in XML; remove or encode it")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def escape_attribute(text: str) -> str:
    """Escape text for an attribute value in single or double quotes."""
    plain = escape(text).replace('"', "&quot;").replace("'", "&#39;")
    return plain.replace("\n", "&#10;").replace("\t", "&#9;")


def replace_illegal(text: str) -> str:
    """The text with U+FFFD for each character that XML does not allow."""
    return _ILLEGAL.sub("\ufffd", text)


# The characters that names must not contain. These sets are smaller than the allowed ones, so the regular
# expressions compile in a quarter of the time, which shortens the start of a node.
_IN_NO_NAME = (
    r"\0-,/:-@\[-^`{-\xb6\xb8-\xbf\xd7\xf7\u037e\u2000-\u200b\u200e-\u203e\u2041-\u206f\u2190-\u2bff"
    r"\u2ff0-\u3000\ud800-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff"
)
_NOT_FIRST = r"\-.0-9\xb7\u0300-\u036f\u203f\u2040"
NCNAME = rf"[^{_IN_NO_NAME}{_NOT_FIRST}][^{_IN_NO_NAME}]*"
"""A regular expression for a name without a colon (Namespaces in XML 1.0)."""
_QNAME = re.compile(rf"(?:({NCNAME}):)?({NCNAME})")


def qname_text(element: etree._Element, text: str | None) -> str:
    """The Clark name of a QName in the content or an attribute of the element."""
    name = _QNAME.fullmatch((text or "").strip(" \t\r\n"))
    if name is None:
        raise InvalidMessage(f"{(text or '')[:80]!r} in {element.tag} is not a QName; write prefix:name")
    prefix, local = name.groups()
    namespace = XML_NS if prefix == "xml" else element.nsmap.get(prefix)
    if namespace is None and prefix is not None:
        raise InvalidMessage(
            f"the prefix of {name[0]!r} in {element.tag} is not bound; declare xmlns:{prefix}"
        )
    return f"{{{namespace}}}{local}" if namespace else local


def prefixed(clark: str) -> tuple[str, str]:
    """The prefixed form of a Clark name, and the declaration of its prefix, "" if not needed."""
    namespace, _, local = clark.removeprefix("{").rpartition("}")
    if not namespace:
        return local, ""
    prefix = PREFIXES.get(namespace, "ns")
    return f"{prefix}:{local}", f' xmlns:{prefix}="{escape_attribute(namespace)}"'
