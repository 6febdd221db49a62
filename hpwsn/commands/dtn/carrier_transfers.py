"""`hpwsn dtn collect` and `hpwsn dtn deliver`: what a carrier does at a node.

A bundle is downloaded and uploaded in pieces, and each transfer goes on where it was broken. The file is
written beside its name and renamed when it is complete; only then is the node told that the carrier has it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from hpwsn.commands.operations.operator_api import (
    NodeRequestFailed,
    add_command,
    add_node_options,
    address,
    download_range,
    dump,
    request,
    send,
)
from hpwsn.errors import BadArguments, HpwsnError

PIECE = 1 << 20
TRIES = 5
"""Attempts for each piece of a transfer."""
PATIENCE = 600.0
"""Seconds for a node to read its log, or to publish a bundle."""
_COLLECT_EXAMPLES = """\
  hpwsn dtn collect --url http://valley:8080/wsn --to summit --carrier ranger --out valley.bundle
  hpwsn dtn collect --to summit --carrier ranger --out rest.bundle --max-bytes 1000000
"""
_DELIVER_EXAMPLES = """\
  hpwsn dtn deliver --url http://summit:8080/wsn valley.bundle
"""

T = TypeVar("T")


def add_carrier_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the actions `collect` and `deliver`."""
    about = "take events from a node into a bundle, a file for another node"
    collect = add_command(actions, "collect", about, _COLLECT_EXAMPLES)
    add_node_options(collect)
    collect.add_argument("--out", type=Path, required=True, metavar="FILE", help="the bundle to write")
    collect.add_argument("--to", required=True, metavar="NODE", help="name of the node that it is for")
    collect.add_argument(
        "--carrier", metavar="NAME", help="who carries it, and gets each event once (default: nobody known)"
    )
    collect.add_argument("--max-bytes", type=int, metavar="N", help="largest size of the file, bytes")
    collect.add_argument("--again", action="store_true", help="also what the carrier was given before")
    collect.set_defaults(handler=_collect)
    about = "give a bundle to a node, which publishes each event once"
    deliver = add_command(actions, "deliver", about, _DELIVER_EXAMPLES)
    add_node_options(deliver)
    deliver.add_argument("bundle", type=Path, metavar="FILE", help="a bundle that `collect` wrote")
    deliver.set_defaults(handler=_deliver)


def _collect(arguments: argparse.Namespace) -> int:
    if arguments.max_bytes is not None and arguments.max_bytes < 1:
        raise BadArguments(f"--max-bytes {arguments.max_bytes} is not a number of bytes; give at least 1")
    asked = {
        "to": arguments.to,
        "carrier": arguments.carrier,
        "max_bytes": arguments.max_bytes,
        "again": arguments.again,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    made = request("POST", address(arguments, "dtn", "collect"), given, ca=arguments.ca, timeout=PATIENCE)
    _download(arguments, made)
    _again(
        lambda: request("POST", address(arguments, "dtn", "bundles", made["id"], "taken"), ca=arguments.ca)
    )
    _tell(arguments, {name: made[name] for name in ("events", "bytes", "left")})
    return 0


def _download(arguments: argparse.Namespace, made: dict[str, Any]) -> None:
    """Write the file of a bundle; HpwsnError if it cannot be written or is not what the node made."""
    url, out = address(arguments, "dtn", "bundles", made["id"]), arguments.out
    unfinished = out.with_name(f".{out.name}.part")
    digest, received = sha256(), 0
    try:
        with unfinished.open("wb") as file:
            while received < made["bytes"]:
                last = min(received + PIECE, made["bytes"]) - 1
                piece = _again(partial(_piece, arguments, url, received, last))
                file.write(piece)
                digest.update(piece)
                received += len(piece)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != made["sha256"]:
            raise HpwsnError(f"what came from {url} is not what the node made; collect it again")
        unfinished.replace(out)
    except OSError as error:
        raise HpwsnError(f"cannot write {out}: {error.strerror}; choose another --out") from None
    finally:
        unfinished.unlink(missing_ok=True)


def _piece(arguments: argparse.Namespace, url: str, first: int, last: int) -> bytes:
    piece = download_range(url, first, last, ca=arguments.ca)
    if not 0 < len(piece) <= last - first + 1:
        raise NodeRequestFailed(f"{url} sent {len(piece)} bytes instead of {last - first + 1}")
    return piece


def _deliver(arguments: argparse.Namespace) -> int:
    try:
        data = arguments.bundle.read_bytes()
    except OSError as error:
        raise HpwsnError(f"cannot read {arguments.bundle}: {error.strerror}") from None
    if len(data) <= PIECE:
        found = _again(lambda: _give(arguments, data))
    else:
        found = _deliver_in_pieces(arguments, data)
    _tell(arguments, found)
    return 0


def _deliver_in_pieces(arguments: argparse.Namespace, data: bytes) -> dict[str, Any]:
    name = sha256(data).hexdigest()
    while True:
        received = _again(lambda: request("GET", address(arguments, "dtn", "uploads", name), ca=arguments.ca))
        at = received["received"]
        if at >= len(data):
            break
        _again(partial(_upload, arguments, name, at, data[at : at + PIECE]))
    url = address(arguments, "dtn", "deliver", upload=name)
    return send("POST", url, b"", ca=arguments.ca, timeout=PATIENCE)


def _upload(arguments: argparse.Namespace, name: str, at: int, piece: bytes) -> dict[str, Any]:
    url = address(arguments, "dtn", "uploads", name, offset=at)
    return send("PUT", url, piece, content_type="application/octet-stream", ca=arguments.ca)


def _give(arguments: argparse.Namespace, data: bytes) -> dict[str, Any]:
    url = address(arguments, "dtn", "deliver")
    kind = "application/octet-stream"
    return send("POST", url, data, content_type=kind, ca=arguments.ca, timeout=PATIENCE)


def _again(step: Callable[[], T]) -> T:
    """Do a step of a transfer; again if the connection broke, which is safe for each of them."""
    for left in reversed(range(TRIES)):
        try:
            return step()
        except NodeRequestFailed as error:
            if error.status is not None or not left:
                raise
    raise AssertionError("the last attempt raises its error")


def _tell(arguments: argparse.Namespace, found: dict[str, Any]) -> None:
    text = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in found.items())
    print(dump(found) if arguments.json else text)
