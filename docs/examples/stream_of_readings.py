"""Publish a lot: several requests are under way at once, in order, and nothing is lost or doubled.

Run: python docs/examples/stream_of_readings.py
Prints:
    10000 accepted
"""

from hpwsn_client import SyncClient

with SyncClient() as client, client.publisher() as publisher:
    for n in range(10_000):
        publisher.put("examples:counter", f"<n>{n}</n>")
    publisher.flush()
    print(n + 1, "accepted")
