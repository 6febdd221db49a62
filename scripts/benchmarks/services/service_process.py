"""One service per request, each a process: the traditional way, as lean as plain Python allows.

    python -m benchmarks.services.service_process < JSON

The JSON line has `port` of the broker and `services`, each with the `path` of its stream and its
`predicates`. The process forks once for each, so that they share the interpreter's memory, and prints a JSON
line with their ports, process ids, and the file of `received` bytes. Each service accepts one consumer, reads
the stream from the broker by one long connection, evaluates its own request for every event, and writes what
matches to its consumer. All end when standard input does.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import signal
import socket
import struct
import sys
from operator import ge, lt, ne

from benchmarks.services.stream_bytes import ANSWER, EventLines, chunk, get_stream

READ = 1 << 16
TESTS = {">=": ge, "<": lt, "!=": ne}


def serve(
    listener: socket.socket,
    port: int,
    path: str,
    predicates: list[tuple[str, str, float]],
    count: mmap.mmap,
    at: int,
) -> None:
    """Serve the one consumer of one request until either side closes."""
    consumer, _ = listener.accept()
    tests = [(name, TESTS[sign], bound) for name, sign, bound in predicates]
    broker, lines, total = socket.create_connection(("127.0.0.1", port)), EventLines(), 0
    broker.sendall(get_stream(path))
    while not lines.has_begun:
        _take(broker, lines)
    consumer.sendall(ANSWER + chunk(b": ready\n\n"))
    while True:
        data = broker.recv(READ)
        if not data:
            return
        total += len(data)
        count[at : at + 8] = struct.pack("q", total)
        wanted = []
        for line in lines.feed(data):
            event = json.loads(line)["data"]
            if all(test(event[name], bound) for name, test, bound in tests):
                wanted.append(b"data: %s\n\n" % line)
        if wanted:
            consumer.sendall(chunk(b"".join(wanted)))


def _take(broker: socket.socket, lines: EventLines) -> None:
    data = broker.recv(READ)
    if not data:
        raise ConnectionError("the broker closed the stream")
    lines.feed(data)


def main() -> None:
    """Fork a process for each service, and end them when standard input ends."""
    given = json.loads(sys.stdin.readline())
    services = given["services"]
    received = os.open(given["received"], os.O_RDWR)
    count = mmap.mmap(received, 8 * len(services))
    gc.freeze()
    ports, pids = [], []
    for number, service in enumerate(services):
        listener = socket.create_server(("127.0.0.1", 0))
        ports.append(listener.getsockname()[1])
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                serve(listener, given["port"], service["path"], service["predicates"], count, 8 * number)
            except OSError:
                pass  # The consumer or the broker is gone, and with it the service's work.
            finally:
                os._exit(0)
        pids.append(pid)
        listener.close()
    print(json.dumps({"ports": ports, "pids": pids}), flush=True)
    try:
        sys.stdin.read()
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
