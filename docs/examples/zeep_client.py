"""Subscribe, publish and unsubscribe with zeep, a SOAP client that needs only the WSDL.

Run: python docs/examples/zeep_client.py
Prints:
    ['21.5']
    {http://docs.oasis-open.org/wsrf/r-2}ResourceUnknownFault
"""

import os

import zeep
from lxml import etree
from zeep import xsd

WSDL = os.environ.get("HPWSN_URL", "http://127.0.0.1:8080/wsn") + "?wsdl"
DIALECT = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/"
TopicText = xsd.ComplexType(xsd.Element("_value_1", xsd.String()), [xsd.Attribute("Dialect", xsd.AnyURI())])

client = zeep.Client(WSDL)
broker = client.bind("HPwsn", "NotificationBrokerSoap11")
mailbox = client.bind("HPwsn", "CreatePullPointSoap11").CreatePullPoint().PullPoint.Address._value_1

expression = etree.Element("{http://docs.oasis-open.org/wsn/b-2}TopicExpression", Dialect=DIALECT + "Simple")
expression.text = "examples:zeep"
subscribed = broker.Subscribe(
    ConsumerReference={"Address": mailbox}, Filter={"_value_1": [expression]}, InitialTerminationTime="PT1H"
)
topic = TopicText("examples/zeep", Dialect=DIALECT + "Concrete")
payload = etree.fromstring("<reading>21.5</reading>")
broker.Notify(NotificationMessage=[{"Topic": topic, "Message": {"_value_1": payload}}])

pull_point = client.create_service("{urn:hpwsn:1}PullPointSoap11", mailbox)
print([message.Message._value_1.text for message in pull_point.GetMessages().NotificationMessage])

address = subscribed.SubscriptionReference.Address._value_1
manager = client.create_service("{urn:hpwsn:1}PausableSubscriptionManagerSoap11", address)
manager.Unsubscribe()
try:
    manager.Unsubscribe()
except zeep.exceptions.Fault as fault:
    print(fault.detail[0].tag)
