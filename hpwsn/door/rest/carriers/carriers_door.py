"""The door for carriers: POST /dtn/collect makes a bundle, POST /dtn/deliver takes one.

A bundle is downloaded from /dtn/bundles/ID, from any byte on, and counts as taken only after POST
/dtn/bundles/ID/taken. A bundle can be delivered as the body of one request, or after an upload in pieces to
/dtn/uploads/SHA256. Every request can be repeated: a node publishes each event once.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.rest.json_requests import read_body, read_object
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

OFF = "this node has no carriers: set dtn.key_file to the file with the key that the nodes share"
LONGEST_NAME = 255
PIECE = 1 << 20
"""The most bytes of a piece of an upload."""
PATIENCE = 600.0
"""Seconds in which a bundle must arrive."""
OUTCOMES = ("published", "repeated", "held")
FURTHER_OUTCOMES = ("passed", "refused")
_is_digest = re.compile(r"[0-9a-f]{64}").fullmatch


class Exchange(Protocol):
    """What a node does for carriers; ValueError says what is wrong with a request."""

    async def collect(self, to: str, carrier: str, room: int | None, again: bool) -> Any:
        """Make a bundle."""

    def find(self, id_: str) -> Any:
        """A bundle that was not taken yet, or None."""

    async def taken(self, bundle: Any) -> None:
        """Record that a carrier has a bundle."""

    async def deliver(self, data: bytes) -> Counter[str]:
        """Take in a bundle; how many events by outcome."""


class Uploads(Protocol):
    """Bundles that come in pieces."""

    def received(self, digest: str) -> int:
        """The bytes that are there."""

    async def add(self, digest: str, offset: int, piece: bytes) -> int:
        """Add a piece; the bytes that are there."""

    async def read(self, digest: str) -> bytes | None:
        """The whole file, or None."""

    def remove(self, digest: str) -> None:
        """Forget it."""


class CarriersDoor:
    """The request handlers; without an exchange they say that carriers are off."""

    def __init__(self, exchange: Exchange | None, uploads: Uploads | None, largest: int) -> None:
        self._exchange = exchange
        self._uploads = uploads
        self._largest = largest

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.post("/dtn/collect", self._collect),
            web.get("/dtn/bundles/{id}", self._download),
            web.post("/dtn/bundles/{id}/taken", self._take),
            web.post("/dtn/deliver", self._deliver),
            web.get("/dtn/uploads/{digest}", self._received),
            web.put("/dtn/uploads/{digest}", self._upload),
        ]

    @answers_in_json
    async def _collect(self, request: web.Request) -> web.StreamResponse:
        exchange = self._on()
        check_names(request)
        asked = await read_object(request, PATIENCE, "to", "carrier", "max_bytes", "again")
        room, again = asked.get("max_bytes"), asked.get("again", False)
        if room is not None and (type(room) is not int or room < 1):
            raise bad(f"max_bytes is {shown(str(room))}; give a whole number of bytes, at least 1")
        if not isinstance(again, bool):
            raise bad("again is not true or false")
        to = _name(asked, "to", "give the name of the node that the events are for")
        carrier = _name(asked, "carrier", "leave it out for a carrier that is not remembered", optional=True)
        try:
            bundle = await exchange.collect(to, carrier, room, again)
        except ValueError as error:
            raise bad(str(error)) from error
        told = {"id": bundle.id, "events": bundle.events, "bytes": bundle.bytes, "left": bundle.left}
        return answer({**told, "sha256": bundle.digest}, 201)

    @answers_in_json
    async def _download(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        path: Path = self._bundle(request).path
        return web.FileResponse(path, headers={"Content-Type": "application/octet-stream"})

    @answers_in_json
    async def _take(self, request: web.Request) -> web.StreamResponse:
        exchange = self._on()
        check_names(request)
        bundle = self._bundle(request)
        await exchange.taken(bundle)
        return answer({"events": bundle.events}, 200)

    @answers_in_json
    async def _deliver(self, request: web.Request) -> web.StreamResponse:
        exchange = self._on()
        check_names(request, "upload")
        digest = request.query.get("upload")
        if digest is None:
            data = await read_body(request, PATIENCE, self._largest)
        else:
            data = await self._uploaded(_digest_of(digest))
        try:
            found = await exchange.deliver(data)
        except ValueError as error:
            raise bad(f"nothing was published: {error}") from error
        finally:
            if digest is not None and self._uploads is not None:
                self._uploads.remove(digest)
        told = {name: found[name] for name in OUTCOMES}
        return answer(told | {name: found[name] for name in FURTHER_OUTCOMES if found[name]}, 200)

    @answers_in_json
    async def _received(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        return answer({"received": self._pieces().received(_digest_of(request.match_info["digest"]))}, 200)

    @answers_in_json
    async def _upload(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "offset")
        uploads, digest = self._pieces(), _digest_of(request.match_info["digest"])
        offset = request.query.get("offset", "0")
        if not (offset.isascii() and offset.isdecimal() and len(offset) <= 18):
            raise bad(f"offset is {shown(offset)}; give the byte that the piece begins with")
        piece = await read_body(request, PATIENCE, PIECE)
        try:
            return answer({"received": await uploads.add(digest, int(offset), piece)}, 200)
        except ValueError as error:
            raise faults.SoapFault(str(error), status=409) from error

    async def _uploaded(self, digest: str) -> bytes:
        data = await self._pieces().read(digest)
        if data is None:
            self._pieces().remove(digest)
            raise bad(f"the upload is not complete, or is not of the SHA-256 {digest}; begin it again")
        return data

    def _on(self) -> Exchange:
        if self._exchange is None:
            raise faults.SoapFault(OFF, status=409)
        return self._exchange

    def _pieces(self) -> Uploads:
        self._on()
        assert self._uploads is not None
        return self._uploads

    def _bundle(self, request: web.Request) -> Any:
        bundle = self._on().find(request.match_info["id"])
        if bundle is None:
            raise faults.SoapFault("there is no such bundle; it was taken, or collect it again", status=404)
        return bundle


def _name(asked: dict[str, Any], field: str, remedy: str, optional: bool = False) -> str:
    """A name of the request; empty if it is absent and may be."""
    value = asked.get(field)
    if value is None and optional:
        return ""
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or not 0 < len(value.encode("utf-8", "replace")) <= LONGEST_NAME
    ):
        raise bad(f"{field} is {shown(str(value))}; {remedy}, 1 to {LONGEST_NAME} bytes")
    return value


def _digest_of(text: str) -> str:
    if not _is_digest(text):
        raise bad(f"{shown(text)} is not a SHA-256 in 64 hexadecimal digits")
    return text
