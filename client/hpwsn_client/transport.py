"""SOAP over HTTP for the client: requests with aiohttp's client, and the HTTP server of a receiver.

Only this module uses aiohttp's client. Connections are reused; timeouts and the size of replies are limited.
aiohttp's exceptions become those of hpwsn_client.errors, SOAP faults are raised as their own exceptions, and
an unexpected reply raises BadReply. Redirects are not followed, cookies are not kept, and requests are not
repeated: the caller decides what to do when a reply is lost. A bearer token goes only to the server that it
is for, whatever addresses that server answers with.
"""

from __future__ import annotations

import io
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

import aiohttp
from aiohttp import web
from lxml import etree

from hpwsn_client.environment import authorization
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
from hpwsn_client.wsn.operations.receipts import ReceiptTo, encode_receipt_to
from hpwsn_client.wsn.soap.addressing import (
    Addressing,
    EndpointReference,
    encode_addressing,
    reference_parameter_headers,
)
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope, parse_envelope
from hpwsn_client.wsn.soap.faults import Busy, SoapFault, TooLarge, parse_fault
from hpwsn_client.wsn.soap.names import HPWSN, WSA_ANONYMOUS
from hpwsn_client.wsn.soap.trace_context import TRACEPARENT, encode_traces, parse_traces
from hpwsn_client.wsn.soap.version import SOAP_ACTIONS, SoapAction, request_headers
from hpwsn_client.wsn.soap.xml import DEFAULT_LIMITS, Limits, escape

_Answer = TypeVar("_Answer")

_CHUNK = 1 << 16
_KEEP_ALIVE = 15.0
"""Seconds to keep an idle connection: shorter than servers do, so that they rarely close one in use."""

SHUTDOWN = 5.0
"""Seconds that in-flight requests may take to finish when the server stops."""


class Transport:
    """Sends SOAP requests to endpoints and returns the body of each reply."""

    def __init__(
        self,
        soap: SoapVersion = SoapVersion.SOAP11,
        *,
        soap_action: SoapAction = "empty",
        timeout: float = 30.0,
        connections: int = 16,
        limits: Limits = DEFAULT_LIMITS,
        tls: ssl.SSLContext | None = None,
        token: str = "",
        token_for: str = "",
    ) -> None:
        """Create a transport; `token` is sent to the scheme, host and port of the URL `token_for` only."""
        self._authorization = authorization(token)
        self._token_server = _server_of(token_for)
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
        """Send one request and return the body element of the reply, None if the reply is empty."""
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
        if self._authorization and _server_of(url) == self._token_server:
            headers = {**headers, **self._authorization}
        try:
            async with session.post(
                url, data=io.BytesIO(data), headers=headers, allow_redirects=False
            ) as response:
                content = await self._read(response, url)
                return Reply(url, response.status, response.charset, response.headers, content)
        except (aiohttp.ClientError, OSError) as error:
            raise _client_error(url, error, self._timeout) from None
        except UnicodeError:
            raise ConnectionFailed(
                f"cannot connect to {url} (the host name is not valid)", url, remedy="give the broker's URL"
            ) from None

    def _open(self, url: str) -> aiohttp.ClientSession:
        if self._closed:
            raise Closed(f"cannot send to {url}: this client is closed; create a new one", url)
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
                    f"the reply from {url} is larger than {self._limits.body} bytes; request fewer messages",
                    url,
                    response.status,
                )
        return b"".join(parts)


def _server_of(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "", None, None  # aiohttp refuses the URL


@dataclass(frozen=True, slots=True)
class Reply:
    """One complete HTTP reply."""

    url: str
    status: int
    charset: str | None
    headers: Mapping[str, str]
    content: bytes


class Caller:
    """Sends one request through a transport and checks the type of the reply."""

    def __init__(self, transport: Transport, broker: EndpointReference, limits: Limits) -> None:
        self._transport = transport
        self._broker = broker
        self._limits = limits

    async def _request(
        self, target: EndpointReference, action: str, request: Message, expected: type[_Answer]
    ) -> _Answer:
        return (await self._exchange(target, action, request, expected))[0]

    async def _exchange(
        self, target: EndpointReference, action: str, request: Message, expected: type[_Answer]
    ) -> tuple[_Answer, etree._Element]:
        """The reply, and its body element, by which the headers of its envelope can be found."""
        body = await self._transport.call(target, action, encode_message(request))
        try:
            answer = None if body is None else parse_message(body, self._limits)
        except SoapFault as error:
            raise BadReply(
                f"{target.address} sent an invalid reply to {action}: {error.reason}", target.address
            ) from None
        if body is None or not isinstance(answer, expected):
            found = "nothing" if body is None else body.tag
            raise BadReply(
                f"{target.address} replied with {found!r}; expected {expected.__name__}", target.address
            )
        return answer, body


async def listen(app: web.Application, host: str, port: int, path: str) -> tuple[web.AppRunner, int]:
    """Start an HTTP server; return its runner and its port. Port 0 means any free port."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        url = http_url(host, port, path)
        raise ConnectionFailed(
            f"cannot listen on {url} ({reason_of(error)}); choose another host or port, or port 0", url
        ) from None
    return runner, runner.addresses[0][1]


def http_url(host: str, port: int, path: str) -> str:
    """The URL of an HTTP server on this host."""
    return f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}"


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
    """The header with the idempotency key, by which the broker recognizes a repeated request."""
    return f'<hp:MessageId xmlns:hp="{HPWSN}">{escape(message_id)}</hp:MessageId>'.encode()


def routing_headers(reliable: bool, partial: bool) -> tuple[bytes, ...]:
    """The hp:Routing header, which sets the delivery between nodes; none if both options are off."""
    if not (reliable or partial):
        return ()
    options = f'reliable="{str(reliable).lower()}" partial="{str(partial).lower()}"'
    return (f'<hp:Routing xmlns:hp="{HPWSN}" {options}/>'.encode(),)


def receipt_headers(receipt_to: EndpointReference | None) -> tuple[bytes, ...]:
    """The hp:ReceiptTo header, which asks the broker for receipts; none without an address."""
    return () if receipt_to is None else (encode_receipt_to(ReceiptTo(receipt_to)),)


def trace_headers(traces: Sequence[str | None]) -> tuple[bytes, ...]:
    """The hp:Traceparent header for messages with these traces, or for all with one; none without any."""
    return (encode_traces(traces),) if any(traces) else ()


def reply_traces(body: etree._Element, count: int) -> list[str | None]:
    """The traceparent of each of `count` messages in a reply with this body element."""
    header = body.getroottree().getroot().find(f"*/{TRACEPARENT}")
    found = parse_traces(header.text or "", count) if header is not None else []
    return found or [None] * count


def check_soap_action(soap_action: SoapAction) -> SoapAction:
    """Return the value if it is valid, else raise ValueError."""
    if soap_action not in SOAP_ACTIONS:
        raise ValueError(
            f"soap_action is {soap_action!r}; give 'empty', or 'action' for peers that dispatch on SOAPAction"
        )
    return soap_action


def body_of(reply: Reply, limits: Limits) -> etree._Element | None:
    """The body element of a reply; raises the fault that it contains, or BadReply."""
    if not reply.content.strip():
        if 200 <= reply.status < 300:
            return None
        raise _bad_reply(reply, "without content")
    try:
        envelope = parse_envelope(reply.content, limits, reply.charset)
    except SoapFault as error:
        excerpt = repr(reply.content[:120].decode(errors="replace"))
        why = f", {error.reason}" if reply.content.lstrip().startswith(b"<") else ""
        raise _bad_reply(reply, f"and no SOAP message: {excerpt}{why}") from None
    body = envelope.body
    if body is not None and body.tag == f"{{{envelope.version.namespace}}}Fault":
        raise _fault_for_status(reply, parse_fault(body, envelope.version))
    return body


def _fault_for_status(reply: Reply, fault: SoapFault) -> SoapFault:
    """The fault as TooLarge or Busy, which only the HTTP status distinguishes."""
    if type(fault) is not SoapFault:
        return fault
    if reply.status == 413:
        return TooLarge(fault.reason)
    if reply.status == 503:
        after = reply.headers.get("Retry-After", "")
        return Busy(fault.reason, retry_after=float(after) if after.isdecimal() else 1.0)
    return fault


def _bad_reply(reply: Reply, content: str) -> BadReply:
    message = f"{reply.url} replied with HTTP {reply.status} {content}"
    return BadReply(message, reply.url, reply.status, remedy=_remedy(reply))


def _remedy(reply: Reply) -> str:
    default_url = urljoin(reply.url, "/wsn")
    if reply.status in (404, 405) and reply.url != default_url:
        return f"check that the URL is the broker's, such as {default_url}"
    if 300 <= reply.status < 400:
        return "redirects are not followed; give the final URL"
    return "check that a WS-Notification broker listens at this URL"


def _client_error(url: str, error: Exception, timeout: float) -> HpwsnClientError:
    """The client's exception for one of aiohttp's, with a remedy."""
    unknown = "the broker may have processed the request"
    if isinstance(error, TimeoutError):
        remedy = "check the broker, or give the client a longer timeout"
        return TimedOut(f"{url} did not reply within {timeout:g} s; {unknown}", url, remedy=remedy)
    tls = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error.__cause__
    if tls is not None and (failed := tls_failed(url, tls)) is not None:
        return failed
    if isinstance(error, aiohttp.ClientConnectorError):
        remedy = "start the broker, or give its URL"
        return ConnectionFailed(f"cannot connect to {url} ({reason_of(error.os_error)})", url, remedy=remedy)
    if isinstance(error, aiohttp.InvalidURL):
        return ConnectionFailed(f"{url!r} is not a URL that HTTP can use; give an http or https URL", url)
    if isinstance(error, aiohttp.ClientResponseError):
        # aiohttp's message has several lines of parser state.
        return BadReply(f"the server at {url} does not use HTTP", url, remedy="give the broker's URL")
    why = str(error) or type(error).__name__
    needs = "https://" if url.startswith("http:") else "a client certificate (tls=)"
    remedy = f"check the broker, and whether it requires {needs}"
    message = f"the connection to {url} was lost before the reply ({why}); {unknown}"
    return ConnectionFailed(message, url, remedy=remedy)


def tls_failed(url: str, error: BaseException) -> ConnectionFailed | None:
    """The exception for a TLS error; None if the error is not one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return CertificateRefused(url, error)
    if isinstance(error, ssl.SSLError):
        why, remedy = handshake_problem(error)
        return ConnectionFailed(f"TLS with {url} failed ({why})", url, remedy=remedy)
    return None
