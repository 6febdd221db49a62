"""Notify envelopes for both lanes: as well-known clients write them, and as nobody would."""

# Envelopes stand here as they are on the wire, where they have no line ends.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

SOAP11 = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP12 = "http://www.w3.org/2003/05/soap-envelope"
WSNT = "http://docs.oasis-open.org/wsn/b-2"
WSA = "http://www.w3.org/2005/08/addressing"
SIMPLE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple"
CONCRETE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"

CLIENTS = {
    "ours": f"""<soap:Envelope xmlns:soap="{SOAP11}"><soap:Header><wsa:To xmlns:wsa="{WSA}">http://b/wsn</wsa:To><wsa:Action xmlns:wsa="{WSA}">http://docs.oasis-open.org/wsn/bw-2/NotificationConsumer/Notify</wsa:Action><wsa:MessageID xmlns:wsa="{WSA}">urn:uuid:1</wsa:MessageID></soap:Header><soap:Body><wsnt:Notify xmlns:wsnt="{WSNT}"><wsnt:NotificationMessage xmlns:wsnt="{WSNT}"><wsnt:Topic xmlns:wsnt="{WSNT}" Dialect="{CONCRETE}">A/B</wsnt:Topic><wsnt:Message xmlns:wsnt="{WSNT}"><r>1</r></wsnt:Message></wsnt:NotificationMessage></wsnt:Notify></soap:Body></soap:Envelope>""",
    "zeep": f"""<?xml version='1.0' encoding='utf-8'?>
<soap-env:Envelope xmlns:soap-env="{SOAP11}"><soap-env:Header xmlns:wsa="{WSA}"><wsa:Action>http://docs.oasis-open.org/wsn/bw-2/NotificationConsumer/Notify</wsa:Action><wsa:MessageID>urn:uuid:2</wsa:MessageID><wsa:To>http://127.0.0.1:8080/wsn</wsa:To></soap-env:Header><soap-env:Body><ns0:Notify xmlns:ns0="{WSNT}"><ns0:NotificationMessage><ns0:Topic Dialect="{SIMPLE}">traffic:speed</ns0:Topic><ns0:Message><m:reading xmlns:m="urn:example">21</m:reading></ns0:Message></ns0:NotificationMessage></ns0:Notify></soap-env:Body></soap-env:Envelope>""",
    "npm soap": f"""<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="{SOAP11}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:tns="http://docs.oasis-open.org/wsn/brw-2" xmlns:wsnt="{WSNT}"><soap:Body><wsnt:Notify xmlns:wsnt="{WSNT}" xmlns="{WSNT}"><wsnt:NotificationMessage><wsnt:Topic Dialect="{SIMPLE}">a</wsnt:Topic><wsnt:Message><reading xmlns="urn:example"><value>1</value></reading></wsnt:Message></wsnt:NotificationMessage></wsnt:Notify></soap:Body></soap:Envelope>""",
    "dotnet": f"""<s:Envelope xmlns:s="{SOAP12}" xmlns:a="{WSA}"><s:Header><a:Action s:mustUnderstand="1">http://docs.oasis-open.org/wsn/bw-2/NotificationConsumer/Notify</a:Action><a:MessageID>urn:uuid:3</a:MessageID><a:ReplyTo><a:Address>http://www.w3.org/2005/08/addressing/anonymous</a:Address></a:ReplyTo><a:To s:mustUnderstand="1">http://b/wsn</a:To></s:Header><s:Body xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"><Notify xmlns="{WSNT}"><NotificationMessage><Topic Dialect="{SIMPLE}">a</Topic><Message><data xsi:type="xsd:int" xmlns="">7</data></Message></NotificationMessage></Notify></s:Body></s:Envelope>""",
    "cxf": f"""<soap:Envelope xmlns:soap="{SOAP11}"><soap:Body><ns2:Notify xmlns="{WSA}" xmlns:ns2="{WSNT}" xmlns:ns3="http://docs.oasis-open.org/wsn/t-1"><ns2:NotificationMessage><ns2:Topic xmlns:ns5="urn:example:tns" Dialect="{CONCRETE}">ns5:A/B</ns2:Topic><ns2:ProducerReference><Address>http://p/1</Address></ns2:ProducerReference><ns2:Message><foo xmlns="" xmlns:ns9="{WSA}">bar</foo></ns2:Message></ns2:NotificationMessage></ns2:Notify></soap:Body></soap:Envelope>""",
    "pretty": f"""<?xml version="1.0"?>
<env:Envelope xmlns:env="{SOAP12}"
    xmlns:w="{WSNT}">
  <env:Header/>
  <env:Body>
    <w:Notify>
      <w:NotificationMessage>
        <w:Topic Dialect="{SIMPLE}">
          a:b
        </w:Topic>
        <w:Message>
          <v w:name='x > y'>
            <w:Message><w:inner/></w:Message>
          </v>
        </w:Message>
      </w:NotificationMessage>
      <w:NotificationMessage><w:Message>only text</w:Message></w:NotificationMessage>
    </w:Notify>
  </env:Body>
</env:Envelope>
""",
}
"""What each of these sends for a notification, in form."""

ORDINARY = tuple(name for name in CLIENTS if name != "pretty")
"""Those that the lane must know; the other has a nested Message, which it may leave to the full parser."""

URIS = (WSNT, WSNT, SOAP11, WSA, "urn:a", "urn:b", "http://x/y?z=1#f")
PREFIXES = ("", "w", "w", "s", "a", "p", "wsnt")
ATTRIBUTES = (
    "", "", "", "", ' xml:lang="de"', " xml:space='preserve'", ' k="a > b"', " k='\"'", ' k=" xmlns:w=\'urn:q\'"', ' p:k="v"',
    """ xmlns:p="urn:p" k=" xmlns:p='urn:q'\"""", """ k=' xmlns:p="urn:q"' xmlns:p='urn:p'""",
)  # fmt: skip
BLANKS = ("", "", "", " ", "\n  ", "\r\n\t")
TEXTS = (
    "",
    "1",
    "w:A",
    "p:B/c",
    "s",
    "x > y",
    "&lt;w:a&gt;",
    "&#x4eac;",
    "京",
    " ",
    "a&amp;b",
    "]]",
    "soap:",
)
ODDITIES = ("", "<!-- w: -->", "<![CDATA[<w:Message>]]>", "<?pi x?>", "&#13;")
NAMES = ("x", "p:x", "a:y", "Notify", "Topic")
ODD_NAMES = ("w:x", "w:Message", "w:NotificationMessage", "w:Notify", "Message", "s:Body")
DIALECTS = (f' Dialect="{SIMPLE}"', f' Dialect="{SIMPLE}"', f" Dialect='{CONCRETE}'", "", ' Dialect="urn:no"')
TOPICS = ("a", "a", "a:b", "p:A", " a ", "京:b", "w:A", "p:A/B", "A/B", "a//b", "*", "1")
HEADERS = (
    "",
    "",
    "<{s}Header/>",
    "<{s}Header></{s}Header>",
    f"<{{s}}Header><a:Action xmlns:a='{WSA}'>x</a:Action></{{s}}Header>",
    f"<{{s}}Header xmlns:q='{WSA}'><q:ReplyTo><q:Address>http://r</q:Address></q:ReplyTo></{{s}}Header>",
    f"<{{s}}Header xmlns:q='{WSA}'><q:ReplyTo> </q:ReplyTo></{{s}}Header>",
    "<{s}Header><a:Action>x</a:Action><p:Own>1</p:Own></{s}Header>",
    '<{s}Header><p:Own {s}mustUnderstand="1">1</p:Own></{s}Header>',
    "<{s}Header><hp:MessageId xmlns:hp='urn:hpwsn:1'>1</hp:MessageId></{s}Header>",
)
T = TypeVar("T")


class Envelopes:
    """Makes envelopes of random parts; the same seed makes the same."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._odd = self.one((0.0, 0.0, 0.02, 0.15))

    def one(self, of: Sequence[T]) -> T:
        return self._random.choice(of)

    def rarely(self) -> bool:
        """True as often as this envelope is odd."""
        return self._random.random() < self._odd

    def odd_one(self, of: Sequence[T]) -> T:
        """The first, but rarely."""
        return self.one(of) if self.rarely() else of[0]

    def declarations(self, most: int) -> str:
        """Namespaces bound anew, now and then."""
        chosen = {self.one(PREFIXES): self.one(URIS) for _ in range(most) if self.rarely()}
        return "".join(f' xmlns{":" if p else ""}{p}="{uri}"' for p, uri in chosen.items())

    def element(self, depth: int = 2) -> str:
        """A payload, or what is inside of one."""
        name, more = (
            self.one(ODD_NAMES if self._random.random() < 0.05 else NAMES),
            self.declarations(2) + self.one(ATTRIBUTES),
        )
        inner = self.one(TEXTS) + self.odd_one(ODDITIES)
        if depth:
            inner += "".join(self.element(depth - 1) for _ in range(self._random.randrange(3))) + self.one(
                TEXTS
            )
        gap = self.one(BLANKS)
        return f"<{name}{more}>{inner}</{name}{gap}>" if inner else f"<{name}{more}{gap}/>"

    def notification(self, w: str) -> str:
        """A NotificationMessage, mostly as the schema has it."""
        gap, parts = self.one(BLANKS), []
        if self._random.random() < 0.7:
            attributes = self.declarations(1) + self.odd_one(DIALECTS) + self.one(ATTRIBUTES)
            parts.append(
                f"<{w}Topic{attributes}>{self.one(TOPICS[:7] if self._odd < 0.1 else TOPICS)}</{w}Topic>"
            )
        if self._random.random() < 0.2:
            address = self.odd_one(("http://p", " ", "http://p?a=1&amp;b=2"))
            inner = f"<a:Address{self.declarations(1)}>{address}</a:Address>"
            parts.append(f"<{w}ProducerReference>{inner}</{w}ProducerReference>")
        payload = self.one(("<x/><x></x>", "<x/>t>", self.one(TEXTS))) if self.rarely() else self.element()
        parts.append(f"<{w}Message{self.declarations(1)}>{gap}{payload}{gap}</{w}Message>")
        scope = self.declarations(1)
        return f"<{w}NotificationMessage{scope}>{gap}{gap.join(parts)}</{w}NotificationMessage>{gap}"

    def envelope(self) -> bytes:
        """One that is a Notify by intention."""
        s, w = self.one(("s:", "s:", "soap:", "")), self.one(("w:", "w:", "wsnt:", ""))
        gap = self.one(BLANKS)
        bound = {f"xmlns:{s[:-1]}" if s else "xmlns": self.one((SOAP11, SOAP12)), "xmlns:a": WSA}
        bound |= {"xmlns:p": "urn:p"} | ({f"xmlns:{w[:-1]}": WSNT} if w else {})
        scope = "".join(f' {name}="{uri}"' for name, uri in bound.items())
        notify = self.declarations(1) if w else f' xmlns="{WSNT}"'
        number = 0 if self._random.random() < self._odd / 5 else self._random.randrange(1, 4)
        inner = "".join(self.notification(w) for _ in range(number))
        xml = self.one(("", '<?xml version="1.0"?>', "<?xml version='1.0' encoding='UTF-8'?>\n"))
        body = (
            f"<{s}Body{self.declarations(1)}>{gap}<{w}Notify{notify}>{gap}{inner}</{w}Notify>{gap}</{s}Body>"
        )
        header = self.one(HEADERS[: None if self.rarely() else -4]).replace("{s}", s)
        return f"{xml}<{s}Envelope{scope}>{gap}{header}{gap}{body}{self.odd_one(ODDITIES)}</{s}Envelope>{gap}".encode()

    def damaged(self) -> bytes:
        """One in which a few bytes are gone, doubled or others."""
        return self.damage(self.envelope())

    def damage(self, data: bytes) -> bytes:
        """The data with a few bytes gone, doubled or others."""
        for _ in range(self._random.randrange(1, 4)):
            at = self._random.randrange(len(data) + 1)
            until = min(len(data), at + self._random.randrange(30))
            put = (b"", data[at:until] * 2, b"<", b">", b"&", b'"', b"/", b"</w:Message>", b"\xff", b"\0")
            data = data[:at] + self.one(put) + data[until:]
        return data
