"""Clients that leave before their answer: an everyday event, of which an operator's log says nothing."""

from __future__ import annotations

import asyncio

from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import envelope, notify, send

TEV = "http://www.onvif.org/ver10/events/wsdl"
PULL = (
    f'<t:PullMessages xmlns:t="{TEV}"><t:Timeout>{{}}</t:Timeout><t:MessageLimit>9</t:MessageLimit>'
    "</t:PullMessages>"
)


async def _leave(node: NodeProcess, address: str, abort: bool) -> None:
    """Ask to wait for messages, and be gone."""
    body = envelope(PULL.format("PT60S"), "1.2")
    _, writer = await asyncio.open_connection("127.0.0.1", int(node.base.rpartition(":")[2]))
    head = (
        f"POST {address.removeprefix(node.base)} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    # The answer to another request tells that the first has been read.
    assert (await send(address, envelope(PULL.format("PT0S"), "1.2"))).status == 200
    if abort:
        writer.transport.abort()
    else:
        writer.close()


async def test_a_client_that_leaves_while_it_waits_is_no_error_in_the_log(node: NodeProcess) -> None:
    made = await send(
        f"{node.base}/onvif/events", envelope(f'<t:CreatePullPointSubscription xmlns:t="{TEV}"/>', "1.2")
    )
    address = made.content.findtext(".//{http://www.w3.org/2005/08/addressing}Address")
    for abort in (False, True):
        await _leave(node, address, abort)
        assert (await send(f"{node.base}/wsn", envelope(notify("leaving", "<n>kept</n>")))).status == 202

        async def is_there() -> bool:
            return b"kept" in (await send(address, envelope(PULL.format("PT0S"), "1.2"))).body

        await eventually(is_there)
    assert await asyncio.to_thread(node.terminate) == 0
    assert "Traceback" not in node.log()
    assert " ERROR " not in node.log()
