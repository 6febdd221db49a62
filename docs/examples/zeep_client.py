"""Subscribe, publish and unsubscribe with zeep, a SOAP client that needs only the WSDL.

Run: python docs/examples/zeep_client.py
Prints:
    examples:zeep 21.5
    {http://docs.oasis-open.org/wsrf/r-2}ResourceUnknownFault
"""

import os

import zeep
from lxml import etree

WSDL = os.environ.get("HPWSN_URL", "http://127.0.0.1:8080/wsn") + "?wsdl=plain"

client = zeep.Client(WSDL)
broker = client.bind("HPwsn", "NotificationBrokerSoap11")
mailbox = client.bind("HPwsn", "CreatePullPointSoap11").CreatePullPoint().PullPoint.Address._value_1

subscribed = broker.Subscribe(
    ConsumerReference={"Address": mailbox},
    Filter={"TopicExpression": "examples:zeep", "MessageContent": "reading > 20"},
    InitialTerminationTime="PT1H",
)
for value in ("19", "21.5"):
    payload = etree.fromstring(f"<weather><reading>{value}</reading></weather>")
    broker.Notify(NotificationMessage=[{"Topic": "examples:zeep", "Message": {"_value_1": payload}}])

pull_point = client.create_service("{urn:hpwsn:1}PullPointSoap11", mailbox)
for message in pull_point.GetMessages().NotificationMessage:
    print(message.Topic._value_1, message.Message._value_1.findtext("reading"))

address = subscribed.SubscriptionReference.Address._value_1
manager = client.create_service("{urn:hpwsn:1}PausableSubscriptionManagerSoap11", address)
manager.Unsubscribe()
try:
    manager.Unsubscribe()
except zeep.exceptions.Fault as fault:
    print(fault.detail[0].tag)
