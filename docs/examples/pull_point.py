"""Fetch notifications from a mailbox at the broker, where it cannot connect to this program.

A pull point has no lifetime, and a name gives the same one again after a restart of either side.

Run: python docs/examples/pull_point.py
Prints:
    examples:yard:gate open
    examples:yard:gate closed
    0 left
"""

from hpwsn_client import SyncClient

with SyncClient() as client:
    mailbox = client.create_pull_point("examples-yard")
    client.subscribe("examples:yard", mailbox)

    client.notify("examples:yard:gate", "open")
    client.notify("examples:yard:gate", "closed")

    for notification in mailbox.get_messages(maximum=10):
        print(notification.topic, notification.text)
    print(len(mailbox.get_messages()), "left")
    mailbox.destroy()
