"""The contract of WS-Notification 1.3 as Spyne models: what a request must hold before the wire looks
closer.

These are the request types of our WSDL. Where Spyne's model is too narrow (mixed content, any elements,
times that are one of two types) a field is left open here, and hpwsn_client.wsn reads it from the element
itself. Requests that hold nothing of the standard's have an optional Extension, since Spyne wants a field.
"""

from spyne import AnyUri, AnyXml, ComplexModel, NonNegativeInteger, Unicode, XmlAttribute
from spyne.model.complex import XmlData

from hpwsn_client.wsn.soap.names import WSA, WSN_BR, WSNT


class EndpointReferenceType(ComplexModel):
    __namespace__ = WSA
    Address = AnyUri(min_occurs=1, nillable=False)
    ReferenceParameters = AnyXml
    Metadata = AnyXml


class TopicExpressionType(ComplexModel):
    __namespace__ = WSNT
    Expression = XmlData(Unicode)
    Dialect = XmlAttribute(AnyUri)


class Subscribe(ComplexModel):
    __namespace__ = WSNT
    ConsumerReference = EndpointReferenceType.customize(min_occurs=1, nillable=False)
    Filter = AnyXml
    InitialTerminationTime = Unicode
    SubscriptionPolicy = AnyXml


class GetCurrentMessage(ComplexModel):
    __namespace__ = WSNT
    Topic = TopicExpressionType.customize(min_occurs=1, nillable=False)


class Notify(ComplexModel):
    __namespace__ = WSNT
    NotificationMessage = AnyXml(min_occurs=1, max_occurs="unbounded", nillable=False)


class Renew(ComplexModel):
    __namespace__ = WSNT
    TerminationTime = Unicode(min_occurs=1)


class Unsubscribe(ComplexModel):
    __namespace__ = WSNT
    Extension = AnyXml


class PauseSubscription(ComplexModel):
    __namespace__ = WSNT
    Extension = AnyXml


class ResumeSubscription(ComplexModel):
    __namespace__ = WSNT
    Extension = AnyXml


class CreatePullPoint(ComplexModel):
    __namespace__ = WSNT
    Extension = AnyXml


class GetMessages(ComplexModel):
    __namespace__ = WSNT
    MaximumNumber = NonNegativeInteger


class DestroyPullPoint(ComplexModel):
    __namespace__ = WSNT
    Extension = AnyXml


class RegisterPublisher(ComplexModel):
    __namespace__ = WSN_BR
    PublisherReference = EndpointReferenceType
    Topic = TopicExpressionType.customize(max_occurs="unbounded")
    Demand = Unicode
    InitialTerminationTime = Unicode


class DestroyRegistration(ComplexModel):
    __namespace__ = WSN_BR
    Extension = AnyXml
