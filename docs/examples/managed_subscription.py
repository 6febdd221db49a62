"""Pause, resume, renew and end a subscription, and read its properties.

Run: python docs/examples/managed_subscription.py
Prints:
    []
    ['stuck']
    ['examples:lifts:north']
    1
"""

from hpwsn_client import SyncClient

with SyncClient() as client:
    mailbox = client.create_pull_point()
    subscription = client.subscribe("examples:lifts", mailbox, expires=600)

    subscription.pause()
    client.notify("examples:lifts:north", "stuck")
    print(mailbox.get_messages())
    subscription.resume()
    print([notification.text for notification in mailbox.get_messages()])

    print([str(topic) for topic in client.get_topics() if topic.path[:2] == ("examples", "lifts")][-1:])
    print(len(client.query_resource_properties("//wsnt:TopicExpression", subscription)))

    subscription.renew(3600)
    client.unsubscribe(subscription.epr.address)
    mailbox.destroy()
