"""Get only what matters: subscriptions by content, in predicates and in XPath.

Run: python docs/examples/content_filter.py
Prints:
    predicate: 72 81
    XPath: 81
"""

from hpwsn_client import SyncClient, SyncPullPoint


def speeds(mailbox: SyncPullPoint) -> str:
    return " ".join(car.element.findtext("speed") or "" for car in mailbox.get_messages())


with SyncClient() as client:
    fast, left = client.create_pull_point(), client.create_pull_point()
    client.subscribe("examples:road", fast, predicate='speed > 60 and kind in ("car", "bus")')
    client.subscribe("examples:road", left, content="speed > 60 and @lane = 'left'")
    for lane, speed in (("left", 50), ("right", 72), ("left", 81)):
        client.notify("examples:road", f"<seen lane='{lane}'><kind>car</kind><speed>{speed}</speed></seen>")
    print("predicate:", speeds(fast))
    print("XPath:", speeds(left))
    fast.destroy()
    left.destroy()
