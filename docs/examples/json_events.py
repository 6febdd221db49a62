"""JSON over HTTP with Python's own library: post events, and poll them with a cursor.

No web service of one's own is needed. Keep the last offset, and go on from it after a restart.

Run: python docs/examples/json_events.py
Prints:
    posted 2
    {'plate': 'B34', 'speed': 61.5}
    {'plate': 'C91', 'speed': 80}
"""

import json
import os
from urllib.request import Request, urlopen

broker = os.environ.get("HPWSN_URL") or "http://127.0.0.1:8080/wsn"
events = f"{broker.removesuffix('/wsn')}/topics/examples:ring/events"
seen = [{"plate": "B34", "speed": 61.5}, {"plate": "C91", "speed": 80}]

request = Request(events, json.dumps(seen).encode(), {"Content-Type": "application/json"})
with urlopen(request) as response:
    offsets = json.load(response)
print("posted", offsets["last"] - offsets["first"] + 1)

cursor = offsets["first"] - 1
while cursor < offsets["last"]:
    with urlopen(f"{events}?after={cursor}&wait=10") as response:
        for event in json.load(response):
            print(event["data"])
            cursor = event["offset"]
