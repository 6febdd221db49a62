"""Checks the settings of the backbone against each other, and builds the address with its password."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hpwsn.backbone.wire.destinations import Address, parse_address
from hpwsn.errors import SettingError
from hpwsn.settings import BackboneSettings
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic_expressions import Topic


def check_backbone(settings: BackboneSettings) -> Iterator[tuple[str, str]]:
    """The problems of the settings, each as the name of a setting and the remedy."""
    if settings.password and settings.password_file:
        yield "backbone.password_file", "is set together with backbone.password; keep one of them"
    if settings.peers and not settings.url:
        yield "backbone.peers", "requires a message broker; set backbone.url"
    for peer in settings.peers:
        try:
            Topic.parse(peer)
        except SoapFault as fault:
            yield "backbone.peers", f"contains {peer!r}: {fault}"
    if settings.url:
        try:
            address = parse_address(settings.url)
        except ValueError as error:
            yield "backbone.url", f"cannot be used: it {error}"
            return
        given = settings.password or settings.password_file
        if given and address.password:
            yield (
                "backbone.url",
                "has a password, and so has backbone.password or its file; keep one of them",
            )
        if given and not address.user:
            yield "backbone.url", "has no user for the password; write stomp://user@host:61613"


def backbone_address(settings: BackboneSettings) -> Address:
    """The address with its password; SettingError if the password file cannot be read."""
    address = parse_address(settings.url)
    if settings.password:
        return replace(address, password=settings.password)
    if not settings.password_file:
        return address
    return replace(address, password=_read_password(settings.password_file))


def _read_password(file: str) -> str:
    try:
        password = Path(file).read_text("utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        remedy = "use a file that this user can read"
        raise SettingError("backbone.password_file", file, f"cannot be read: {reason}; {remedy}") from error
    if not password:
        raise SettingError("backbone.password_file", file, "is empty; write the password into it")
    return password
