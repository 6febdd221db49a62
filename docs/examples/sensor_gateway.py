"""A gateway in plain Python: register a sensor, post readings, and look at what was rejected.

Run: python docs/examples/sensor_gateway.py
Prints:
    accepted 1 of 2
    range: temperature is 215 degC, outside of -40 to 60
    [{'temperature': 21.5}]
"""

import json
import os
from datetime import UTC, datetime
from urllib.parse import urlencode
from urllib.request import Request, urlopen

NODE = os.environ.get("HPWSN_URL", "http://127.0.0.1:8080/wsn").removesuffix("/wsn")
SENSOR = "example-roof"


def ask(method: str, path: str, body: object = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(NODE + path, data, method=method)) as answer:
        return json.load(answer)


ask(
    "POST",
    "/sensors",
    {"id": SENSOR, "kind": "weather", "quantities": {"temperature": {"unit": "degC", "min": -40, "max": 60}}},
)

# The node knows a reading by its sensor and time, so that it can be sent again.
now = datetime.now(UTC).isoformat(timespec="milliseconds")
readings = [{"time": now, "temperature": 21.5}, {"time": now, "temperature": 215}]
taken = ask("POST", f"/sensors/{SENSOR}/readings", readings)
print("accepted", taken["accepted"], "of", len(readings))

for each in ask("GET", f"/readings/rejected?{urlencode({'sensor': SENSOR})}")["items"]:
    print(f"{each['reason']}: {each['detail']}")

kept = ask("GET", f"/readings?{urlencode({'sensor': SENSOR})}")["items"]
print([{"temperature": reading["temperature"]} for reading in kept])
