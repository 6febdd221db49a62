"""Hand-written SOAP over HTTP, as a client that nobody here wrote would send it."""

from __future__ import annotations

import io
from dataclasses import dataclass

import aiohttp
from lxml import etree

ENV = {
    "1.1": "http://schemas.xmlsoap.org/soap/envelope/",
    "1.2": "http://www.w3.org/2003/05/soap-envelope",
}
TYPES = {"1.1": "text/xml; charset=utf-8", "1.2": "application/soap+xml; charset=utf-8"}
WSNT = "http://docs.oasis-open.org/wsn/b-2"
WSA = "http://www.w3.org/2005/08/addressing"
SIMPLE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple"
CONCRETE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"
FULL = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full"
CONCRETE_SET = "http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet"
XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"
NAMES = {"w": WSNT, "a": WSA, "b": "http://docs.oasis-open.org/wsrf/bf-2"}


@dataclass(frozen=True)
class Reply:
    """An HTTP response, its envelope if it has one."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def envelope(self) -> etree._Element:
        return etree.fromstring(self.body)

    @property
    def content(self) -> etree._Element:
        """The element in the SOAP body."""
        root = self.envelope
        return root.find(f"{{{etree.QName(root).namespace}}}Body")[0]

    @property
    def detail(self) -> etree._Element:
        """The element in a fault's detail."""
        return next(e for e in self.content.iter() if etree.QName(e).localname in ("detail", "Detail"))[0]

    @property
    def fault(self) -> str:
        """The local name of the fault's detail element."""
        return etree.QName(self.detail).localname

    def text(self, path: str) -> str:
        """The text at a path below the body's element."""
        return (self.content.findtext(path, namespaces=NAMES) or "").strip()


def envelope(body: str, version: str = "1.1", headers: str = "") -> bytes:
    """A SOAP envelope around text."""
    head = f"<s:Header>{headers}</s:Header>" if headers else ""
    return (
        f'<s:Envelope xmlns:s="{ENV[version]}" xmlns:w="{WSNT}" xmlns:a="{WSA}">{head}<s:Body>{body}</s:Body>'
        "</s:Envelope>"
    ).encode()


async def send(url: str, data: bytes, content_type: str = TYPES["1.1"], method: str = "POST") -> Reply:
    """One request on a connection of its own."""
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method, url, data=io.BytesIO(data), headers={"Content-Type": content_type}
        ) as response,
    ):
        return Reply(response.status, dict(response.headers), await response.read())


async def call(url: str, body: str, version: str = "1.1", headers: str = "") -> Reply:
    """Post a request and read its answer."""
    return await send(url, envelope(body, version, headers), TYPES[version])


def subscribe(
    consumer: str,
    topic: str | None = None,
    *,
    dialect: str | None = SIMPLE,
    more: str = "",
    filters: str = "",
) -> str:
    """A Subscribe request."""
    given = f' Dialect="{dialect}"' if dialect else ""
    expression = "" if topic is None else f"<w:TopicExpression{given}>{topic}</w:TopicExpression>"
    wanted = f"<w:Filter>{expression}{filters}</w:Filter>" if expression or filters else ""
    return (
        f"<w:Subscribe><w:ConsumerReference><a:Address>{consumer}</a:Address></w:ConsumerReference>"
        f"{wanted}{more}</w:Subscribe>"
    )


def notify(topic: str | None, *payloads: str, dialect: str | None = SIMPLE) -> str:
    """A Notify of one message for each payload."""
    given = f' Dialect="{dialect}"' if dialect else ""
    on = "" if topic is None else f"<w:Topic{given}>{topic}</w:Topic>"
    messages = "".join(
        f"<w:NotificationMessage>{on}<w:Message>{payload}</w:Message></w:NotificationMessage>"
        for payload in payloads
    )
    return f"<w:Notify>{messages}</w:Notify>"
