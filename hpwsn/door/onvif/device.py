"""The operations of an ONVIF device that a client calls before it uses the event service.

They are GetServices, GetCapabilities, GetServiceCapabilities, GetSystemDateAndTime and GetDeviceInformation
of http://www.onvif.org/ver10/device/wsdl. The node is not a camera: all other operations get a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lxml import etree

from hpwsn.door.soap.dispatch import Answer, Call
from hpwsn_client import __version__
from hpwsn_client.wsn.formats.onvif import GetServiceCapabilitiesResponse, encode_capabilities
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.names import TDS, TER, TEV, TT
from hpwsn_client.wsn.soap.xml import escape
from hpwsn_client.wsn.topics.topic import shown

_TIME, _DATE = ("Hour", "Minute", "Second"), ("Year", "Month", "Day")
_CATEGORIES = {"All", "Device", "Events", ""}
_SCOPE = f'xmlns:tds="{TDS}" xmlns:tt="{TT}"'
_DEVICE_CAPABILITIES = (
    '<tds:Capabilities><tds:Network/><tds:Security UsernameToken="true"/><tds:System/></tds:Capabilities>'
)
_VERSION = "<tds:Version><tt:Major>2</tt:Major><tt:Minor>60</tt:Minor></tds:Version>"

PRE_AUTHORISED = frozenset(
    f"{{{TDS}}}{name}"
    for name in ("GetServices", "GetCapabilities", "GetServiceCapabilities", "GetSystemDateAndTime")
)
"""Operations that need no authentication (ONVIF Core Specification, access class PRE_AUTH)."""


class DeviceService:
    """The operations of /onvif/device_service."""

    def __init__(
        self, base: Callable[[], str], now: Callable[[], datetime], events: GetServiceCapabilitiesResponse
    ) -> None:
        self._base = base
        self._now = now
        self._events = events
        self._operations: dict[str, Callable[[etree._Element], str]] = {
            "GetServices": self._services,
            "GetCapabilities": self._capabilities,
            "GetServiceCapabilities": lambda _: _DEVICE_CAPABILITIES,
            "GetSystemDateAndTime": self._time,
            "GetDeviceInformation": self._information,
        }

    async def call(self, call: Call) -> Answer:
        """Run an operation of the device service."""
        body = call.envelope.body
        if body is None:
            raise faults.InvalidMessage("the SOAP Body is empty; send one request element")
        name = body.tag.removeprefix(f"{{{TDS}}}")
        answer = self._operations.get(name)
        if answer is None:
            raise faults.ActionNotSupported(
                f"{body.tag} is not an operation of this address; it has"
                f" {', '.join(sorted(self._operations))}"
            )
        return Answer(
            f"<tds:{name}Response {_SCOPE}>{answer(body)}</tds:{name}Response>".encode(),
            action=f"{TDS}/{name}Response",
        )

    def _address(self, path: str) -> str:
        return escape(f"{self._base()}/onvif/{path}")

    def _services(self, request: etree._Element) -> str:
        included = (request.findtext(f"{{{TDS}}}IncludeCapability") or "").strip() in ("true", "1")
        events = f"<tds:Capabilities>{encode_capabilities(self._events).decode()}</tds:Capabilities>"
        device = f"<tds:Capabilities>{_DEVICE_CAPABILITIES}</tds:Capabilities>"
        return self._service(TDS, "device_service", device if included else "") + self._service(
            TEV, "events", events if included else ""
        )

    def _service(self, namespace: str, path: str, capabilities: str) -> str:
        return (
            f"<tds:Service><tds:Namespace>{namespace}</tds:Namespace><tds:XAddr>{self._address(path)}</tds:XAddr>"
            f"{capabilities}{_VERSION}</tds:Service>"
        )

    def _capabilities(self, request: etree._Element) -> str:
        categories = {(each.text or "").strip() for each in request.iterchildren(f"{{{TDS}}}Category")}
        if unknown := categories - _CATEGORIES:
            raise faults.SoapFault(
                f"the category {shown(sorted(unknown)[0])} is not supported; ask for All, Device or Events",
                code=faults.FaultCode.RECEIVER,
                subcode=f"{{{TER}}}ActionNotSupported",
            )
        wanted = categories - {""} or {"All"}
        device = f"<tt:Device><tt:XAddr>{self._address('device_service')}</tt:XAddr></tt:Device>"
        parts = (device if wanted & {"All", "Device"} else "", self._events_capabilities(wanted))
        return f"<tds:Capabilities>{''.join(parts)}</tds:Capabilities>"

    def _events_capabilities(self, wanted: set[str]) -> str:
        if not wanted & {"All", "Events"}:
            return ""
        support = {
            "WSSubscriptionPolicySupport": self._events.policies,
            "WSPullPointSupport": self._events.pull_points,
            "WSPausableSubscriptionManagerInterfaceSupport": self._events.pausable,
        }
        flags = "".join(f"<tt:{name}>{str(value).lower()}</tt:{name}>" for name, value in support.items())
        return f"<tt:Events><tt:XAddr>{self._address('events')}</tt:XAddr>{flags}</tt:Events>"

    def _time(self, request: etree._Element) -> str:
        now = self._now()
        time = "".join(f"<tt:{part}>{getattr(now, part.lower())}</tt:{part}>" for part in _TIME)
        date = "".join(f"<tt:{part}>{getattr(now, part.lower())}</tt:{part}>" for part in _DATE)
        return (
            "<tds:SystemDateAndTime><tt:DateTimeType>NTP</tt:DateTimeType>"
            "<tt:DaylightSavings>false</tt:DaylightSavings><tt:TimeZone><tt:TZ>UTC0</tt:TZ></tt:TimeZone>"
            f"<tt:UTCDateTime><tt:Time>{time}</tt:Time><tt:Date>{date}</tt:Date></tt:UTCDateTime>"
            "</tds:SystemDateAndTime>"
        )

    def _information(self, request: etree._Element) -> str:
        values = {
            "Manufacturer": "HPwsn",
            "Model": "WS-Notification broker",
            "FirmwareVersion": __version__,
            "SerialNumber": self._base(),
            "HardwareId": "none",
        }
        return "".join(f"<tds:{name}>{escape(value)}</tds:{name}>" for name, value in values.items())
