"""A publisher of small notifications at a steady rate, as a process of its own; it ends with its input.

It prints its latencies as JSON: the seconds from the time at which a request was due to the 202.
"""

import contextlib
import http.client
import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from benchmarks.tools.cores import unpin
from benchmarks.tools.messages import envelope

EVERY = 0.01
TOPIC = "second"


def publish(url: str) -> list[float]:
    """Publish until standard input ends; the latency of each request."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = envelope(TOPIC)
    latencies: list[float] = []
    due = time.perf_counter()
    while not select.select([sys.stdin], [], [], max(0.0, due - time.perf_counter()))[0]:
        connection.request("POST", place.path, body, {"Content-Type": "text/xml; charset=utf-8"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 202:
            raise RuntimeError(f"the second publisher got {answer.status}")
        latencies.append(time.perf_counter() - due)
        due += EVERY
    return latencies


@contextlib.contextmanager
def beside(url: str, latencies: list[float]) -> Iterator[None]:
    """A steady publisher while the block runs; its latencies are added at the end."""
    command = [sys.executable, "-m", "benchmarks.tools.steady_publisher", url]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=unpin
    )
    try:
        yield
    finally:
        output, _ = process.communicate("\n")
    latencies += json.loads(output)


if __name__ == "__main__":
    print(json.dumps(publish(sys.argv[1])))
