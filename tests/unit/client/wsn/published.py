"""Payloads as publishers may write them, with all that XML knows, and what of them a subscriber must get.

The strategies give source text, since a tree would not tell a CDATA section or a character reference from
plain text. `canonical` is what must be the same on both sides.
"""

from __future__ import annotations

from hypothesis import strategies as st
from lxml import etree

WSNT = "http://docs.oasis-open.org/wsn/b-2"
ENVELOPES = ("http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope")
AROUND = {"p": "urn:p", "q": "urn:p", "xsi": "http://www.w3.org/2001/XMLSchema-instance", "京": "urn:k"}
"""Prefixes that the envelope declares, two of them for one namespace."""

_remarks = st.sampled_from(
    [
        "<!-- c -->",
        "<!---->",
        "<!-- p:x & <b> ]]> -->",
        "<?pi some data?>",
        "<?pi?>",
        "<!--\r\n京-->",
        "<?i q:x?>",
    ]
)
_texts = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "\n  ",
            "\r\n\t",
            "1",
            "p:T",
            "a&amp;b",
            "x > y",
            "&#13;",
            "&#x4eac;",
            "&#112;:T",
            "&#10;",
            "]]",
            "京:é",
        ]
    ),
    st.sampled_from(["<![CDATA[<b>&]]>", "<![CDATA[]]>", "<![CDATA[<!-- p: -->]]>"]),
)
_values = st.sampled_from(
    ["", "1", "q:T", "a&#10;b", "a&#9;b\n c", "&lt;&amp;&quot;'", "&#13;", "京:T", " x  y "]
)
_names = st.sampled_from(["r", "s", "p:r", "q:s", "w:Message", "京:r"])
_attributes = st.dictionaries(st.sampled_from(["b", "a", "p:a", "xsi:type", "xml:lang"]), _values, max_size=3)
_spaces = st.sampled_from(["", "", "", ' xml:space="preserve"', " xml:space='default'"])
_declarations = st.sampled_from(
    ["", "", "", ' xmlns:p="urn:other"', ' xmlns="urn:d"', ' xmlns:z="urn:z"', ' xmlns=""']
)


@st.composite
def _elements(draw: st.DrawFn, inside: st.SearchStrategy[str]) -> str:
    name, content = draw(_names), draw(inside)
    attributes = "".join(f' {key}="{value}"' for key, value in draw(_attributes).items())
    start = name + draw(_declarations) + attributes + draw(_spaces)
    return f"<{start}>{content}</{name}>" if content else f"<{start}/>"


def _mixed(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(parts, max_size=5).map("".join)


payloads = _elements(
    _mixed(st.recursive(st.one_of(_texts, _remarks), lambda inner: _elements(_mixed(inner)), max_leaves=8))
)
"""One element, whose prefixes AROUND declares, or the element itself."""

remarks = st.lists(_remarks, max_size=2).map("".join)
"""Comments and processing instructions, to be put where they mean nothing."""


@st.composite
def envelopes(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A Notify of one payload, with comments anywhere, and the payload standing alone."""
    payload, scope = draw(payloads), "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in AROUND.items())
    scope += f' xmlns:w="{WSNT}"'
    default = draw(st.sampled_from(["", ' xmlns="urn:default"']))
    gaps = draw(st.sampled_from([("",) * 8, tuple(draw(remarks) for _ in range(8))]))
    soap = draw(st.sampled_from(ENVELOPES))
    data = (
        f'<s:Envelope xmlns:s="{soap}"{scope}>{gaps[0]}<s:Body>{gaps[1]}<w:Notify{default}>{gaps[2]}'
        f"<w:NotificationMessage>{gaps[3]}<w:Topic>a{gaps[4]}</w:Topic><w:Message>{gaps[5]}{payload}{gaps[6]}"
        f"</w:Message></w:NotificationMessage></w:Notify>{gaps[7]}</s:Body></s:Envelope>"
    )
    return data.encode(), alone(payload, scope + default)


def alone(payload: str, scope: str) -> bytes:
    """The payload's own document: what the envelope declares stands on an element around it."""
    return f"<around{scope}>{payload}</around>".encode()


def canonical(document: bytes) -> bytes:
    """A payload in exclusive canonical form, with its comments; `document` is itself or what `alone` made."""
    root = etree.fromstring(document)
    element = root[0] if root.tag in ("around", "{urn:default}around") else root
    return bytes(etree.tostring(element, method="c14n", exclusive=True, with_comments=True, with_tail=False))


def qnames(document: bytes) -> list[tuple[str, str | None]]:
    """What the prefixes in attributes' values and texts stand for, in order."""
    root = etree.fromstring(document)
    element = root[0] if root.tag in ("around", "{urn:default}around") else root
    found: list[tuple[str, str | None]] = []
    for each in element.iter("*"):
        texts = [*each.attrib.values(), each.text or ""]
        words = [word.strip() for word in texts if word.count(":") == 1 and len(word.strip()) < 6]
        found += [(word, each.nsmap.get(word.partition(":")[0])) for word in words]
    return found
