"""Read the events of a node with onvif-zeep-async, the library of Home Assistant for ONVIF cameras.

Run: python docs/examples/onvif_client.py
Prints:
    t:RuleEngine/CellMotionDetector/Motion true
"""

import asyncio
import os
from datetime import timedelta
from urllib.parse import urlsplit

from onvif import ONVIFCamera

from hpwsn_client import Client

NODE = urlsplit(os.environ.get("HPWSN_URL", "http://127.0.0.1:8080/wsn"))
MOTION = "{http://www.onvif.org/ver10/topics}RuleEngine/CellMotionDetector/Motion"
EVENT = """<tt:Message xmlns:tt="http://www.onvif.org/ver10/schema" UtcTime="2030-01-31T12:00:00Z">
  <tt:Data><tt:SimpleItem Name="IsMotion" Value="true"/></tt:Data>
</tt:Message>"""


async def main() -> None:
    """Publish an event, and pull it as a client of a camera does."""
    camera = ONVIFCamera(NODE.hostname, NODE.port, "any", "body", no_cache=True)
    await camera.update_xaddrs()
    manager = await camera.create_pullpoint_manager(timedelta(minutes=10), lambda: print("lost"))
    async with Client() as client:
        await client.notify(MOTION, EVENT)
    answer = await manager.get_service().PullMessages({"Timeout": timedelta(seconds=30), "MessageLimit": 100})
    for message in answer.NotificationMessage:
        print(message.Topic._value_1, message.Message._value_1.Data.SimpleItem[0].Value)
    await manager.shutdown()
    await camera.close()


asyncio.run(main())
