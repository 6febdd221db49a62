"""Publish and receive without asyncio: the receiver calls a function for each notification.

The broker is answered when the function has returned. Where it raises, the broker delivers again.

Run: python docs/examples/sync_client.py
Prints:
    fire, level 3
"""

from threading import Event

from hpwsn_client import Notification, SyncClient, SyncReceiver

seen = Event()


def alarm(notification: Notification) -> None:
    print(f"{notification.element.get('kind')}, level {notification.element.findtext('level')}")
    seen.set()


with SyncClient() as client, SyncReceiver(callback=alarm) as receiver:
    subscription = client.subscribe("examples:alarms", receiver, expires=3600)
    client.notify("examples:alarms", "<alarm kind='fire'><level>3</level></alarm>")
    seen.wait()
    subscription.unsubscribe()
