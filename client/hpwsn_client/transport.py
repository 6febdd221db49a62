"""The client's way over HTTP: one aiohttp session, its connections reused, every wait and every answer
bounded.

The only module of the client side that knows aiohttp's client. It turns aiohttp's exceptions into ours,
and an answer that is a fault into the fault's own exception. It follows no redirect, keeps no cookie, and
repeats no request: whether a lost request was carried out is for the caller to decide.

One request and its answer: what every operation of a client is made of.

Owns that an answer is the one which was due; anything else is BadReply. Faults of the broker are raised
as they are.

A web service of the client's own: where it listens, or one line that says why it cannot.
"""

from __future__ import annotations

import io
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urljoin
from uuid import uuid4

import aiohttp
from aiohttp import web
from lxml import etree

from hpwsn_client.errors import (
    BadReply,
    CertificateRefused,
    Closed,
    ConnectionFailed,
    HpwsnClientError,
    TimedOut,
    reason_of,
)
from hpwsn_client.tls import handshake_problem
from hpwsn_client.wsn.operations.messages import Message, encode_message, parse_message
from hpwsn_client.wsn.soap.addressing import (
    Addressing,
    EndpointReference,
    encode_addressing,
    reference_parameter_headers,
)
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope, parse_envelope
from hpwsn_client.wsn.soap.faults import Busy, SoapFault, TooLarge, parse_fault
from hpwsn_client.wsn.soap.names import HPWSN, WSA_ANONYMOUS
from hpwsn_client.wsn.soap.version import SOAP_ACTIONS, SoapAction, request_headers
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits, escape

_Answer = TypeVar("_Answer")


class Caller:
    """Has one transport, and speaks to any endpoint by it."""

    def __init__(self, transport: Transport, broker: EndpointReference, limits: Limits) -> None:
        self._transport = transport
        self._broker = broker
        self._limits = limits

    async def _request(
        self, target: EndpointReference, action: str, request: Message, expected: type[_Answer]
    ) -> _Answer:
        body = await self._transport.call(target, action, encode_message(request))
        try:
            answer = None if body is None else parse_message(body, self._limits)
        except SoapFault as error:
            raise BadReply(
                f"{target.address} answered {action} badly: {error.reason}", target.address
            ) from None
        if not isinstance(answer, expected):
            found = "nothing" if body is None else body.tag
            raise BadReply(
                f"{target.address} answered {found!r} where {expected.__name__} was due", target.address
            )
        return answer


SHUTDOWN = 5.0
"""Seconds for requests under way to end."""


def http_url(host: str, port: int, path: str) -> str:
    """The address of a service on this machine."""
    return f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}"


async def listen(app: web.Application, host: str, port: int, path: str) -> tuple[web.AppRunner, int]:
    """Start the service; what runs it, and its port, which is a free one for 0."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        where = http_url(host, port, path)
        why = reason_of(error)
        raise ConnectionFailed(
            f"cannot listen on {where} ({why}); choose another host or port, or port 0", where
        ) from None
    return runner, runner.addresses[0][1]


_CHUNK = 1 << 16
_KEEP_ALIVE = 15.0
"""Seconds an idle connection is kept: less than servers do, so that they rarely close it under a request."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP answer, read to its end."""

    url: str
    status: int
    charset: str | None
    headers: Mapping[str, str]
    content: bytes


class Transport:
    """Sends SOAP requests to endpoints and hands back the body of each answer."""

    def __init__(
        self,
        soap: SoapVersion = SoapVersion.SOAP11,
        *,
        soap_action: SoapAction = "empty",
        timeout: float = 30.0,
        connections: int = 16,
        limits: Limits = DEFAULT_LIMITS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._soap = soap
        self._soap_action = check_soap_action(soap_action)
        self._timeout = timeout
        self._connections = connections
        self._limits = limits
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def call(
        self, target: EndpointReference, action: str, body: bytes, headers: Iterable[bytes] = ()
    ) -> etree._Element | None:
        """Send one request and return the answer's body element, or None where the answer is empty."""
        data = encode_envelope(self._soap, body, [*addressing_headers(target, action), *headers])
        return body_of(await self._post(target.address, action, data), self._limits)

    async def close(self) -> None:
        """Close the connections; later calls raise Closed."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _post(self, url: str, action: str, data: bytes) -> Reply:
        session = self._open(url)
        headers = request_headers(self._soap, action, self._soap_action)
        try:
            async with session.post(
                url, data=io.BytesIO(data), headers=headers, allow_redirects=False
            ) as response:
                content = await self._read(response, url)
                return Reply(url, response.status, response.charset, response.headers, content)
        except (aiohttp.ClientError, OSError) as error:
            raise _trouble(url, error, self._timeout) from None
        except UnicodeError:
            why = "no host can have this name"
            raise ConnectionFailed(
                f"nobody answers at {url} ({why})", url, remedy="name the broker's URL"
            ) from None

    def _open(self, url: str) -> aiohttp.ClientSession:
        if self._closed:
            raise Closed(f"this client was closed; make a new one to reach {url}", url)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._connections, keepalive_timeout=_KEEP_ALIVE, ssl=self._tls or True
                ),
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def _read(self, response: aiohttp.ClientResponse, url: str) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_chunked(_CHUNK):
            parts.append(chunk)
            size += len(chunk)
            if size > self._limits.body:
                response.close()
                raise BadReply(
                    f"the answer from {url} is larger than {self._limits.body} bytes; ask for fewer messages",
                    url,
                    response.status,
                )
        return b"".join(parts)


def _trouble(url: str, error: Exception, timeout: float) -> HpwsnClientError:
    """Our exception for aiohttp's, with what the reader can do about it."""
    unknown = "whether the request was carried out is not known"
    if isinstance(error, TimeoutError):
        remedy = "see that the broker is well, or give the client a longer timeout"
        return TimedOut(f"{url} did not answer within {timeout:g} s; {unknown}", url, remedy=remedy)
    tls = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error.__cause__
    if tls is not None and (failed := tls_failed(url, tls)) is not None:
        return failed
    if isinstance(error, aiohttp.ClientConnectorError):
        remedy = "start the broker, or name its URL"
        return ConnectionFailed(f"nobody answers at {url} ({reason_of(error.os_error)})", url, remedy=remedy)
    if isinstance(error, aiohttp.InvalidURL):
        return ConnectionFailed(f"{url} cannot be reached over HTTP; an endpoint needs an http URL", url)
    if isinstance(error, aiohttp.ClientResponseError):
        # Its words are those of a parser, over several lines.
        return BadReply(f"what answers at {url} does not speak HTTP", url, remedy="name the broker's URL")
    why = str(error) or type(error).__name__
    demands = "want https://" if url.startswith("http:") else "demand a certificate of its clients (tls=)"
    remedy = f"see that the broker is well, and does not {demands}"
    message = f"the connection to {url} was lost before the answer ({why}); {unknown}"
    return ConnectionFailed(message, url, remedy=remedy)


def tls_failed(url: str, error: BaseException) -> ConnectionFailed | None:
    """The exception for a server with which TLS does not come about; None where it is not TLS that failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return CertificateRefused(url, error)
    if isinstance(error, ssl.SSLError):
        why, remedy = handshake_problem(error)
        return ConnectionFailed(f"TLS with {url} failed ({why})", url, remedy=remedy)
    return None


def addressing_headers(target: EndpointReference, action: str) -> list[bytes]:
    """The WS-Addressing headers of one request."""
    addressing = Addressing(
        action=action,
        to=target.address,
        message_id=f"urn:uuid:{uuid4()}",
        reply_to=EndpointReference(WSA_ANONYMOUS),
    )
    return [*encode_addressing(addressing), *reference_parameter_headers(target)]


def message_id_header(message_id: str) -> bytes:
    """The header by which the broker knows a request that it has had before."""
    return f'<hp:MessageId xmlns:hp="{HPWSN}">{escape(message_id)}</hp:MessageId>'.encode()


def routing_headers(reliable: bool, partial: bool) -> tuple[bytes, ...]:
    """The header that says how notifications travel between nodes, where something is said."""
    if not (reliable or partial):
        return ()
    asked = f'reliable="{str(reliable).lower()}" partial="{str(partial).lower()}"'
    return (f'<hp:Routing xmlns:hp="{HPWSN}" {asked}/>'.encode(),)


def check_soap_action(soap_action: SoapAction) -> SoapAction:
    """The value itself, where it is one of the two."""
    if soap_action not in SOAP_ACTIONS:
        raise ValueError(
            f"soap_action is {soap_action!r}; give 'empty', or 'action' for peers that dispatch on SOAPAction"
        )
    return soap_action


def body_of(reply: Reply, limits: Limits) -> etree._Element | None:
    """The body of a good answer; any other is raised, as a fault or as BadReply."""
    if not reply.content.strip():
        if 200 <= reply.status < 300:
            return None
        raise _bad(reply, "without a message")
    try:
        envelope = parse_envelope(reply.content, limits, reply.charset)
    except SoapFault as error:
        shown = repr(reply.content[:120].decode(errors="replace"))
        why = f", {error.reason}" if reply.content.lstrip().startswith(b"<") else ""
        raise _bad(reply, f"without SOAP: {shown}{why}") from None
    body = envelope.body
    if body is not None and body.tag == f"{{{envelope.version.namespace}}}Fault":
        raise _by_status(reply, parse_fault(body, envelope.version))
    return body


def _by_status(reply: Reply, fault: SoapFault) -> SoapFault:
    """The fault, as the class that only the HTTP status tells."""
    if type(fault) is not SoapFault:
        return fault
    if reply.status == 413:
        return TooLarge(fault.reason)
    if reply.status == 503:
        after = reply.headers.get("Retry-After", "")
        return Busy(fault.reason, retry_after=float(after) if after.isdecimal() else 1.0)
    return fault


def _bad(reply: Reply, how: str) -> BadReply:
    message = f"{reply.url} answered HTTP {reply.status} {how}"
    return BadReply(message, reply.url, reply.status, remedy=_remedy(reply))


def _remedy(reply: Reply) -> str:
    usual = urljoin(reply.url, "/wsn")
    if reply.status in (404, 405) and reply.url != usual:
        return f"see that the URL is that of the broker, such as {usual}"
    if 300 <= reply.status < 400:
        return "redirects are not followed; name the final URL"
    return "see that a WS-Notification broker listens at this URL"
