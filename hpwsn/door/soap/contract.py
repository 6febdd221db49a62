"""The requests of our WSDL as Spyne models.

Spyne validates a request against its model before an operation runs. Where a Spyne model is too narrow
(mixed content, any elements, times of two types) the field accepts any content, and hpwsn_client.wsn checks
the element itself. A request without content has the optional field Extension, because Spyne requires a
field. WS-BaseNotification 1.3, WS-BrokeredNotification 1.3, WSRF 1.2, and the event service of ONVIF.
"""

from spyne import AnyUri, AnyXml, ComplexModel, NonNegativeInteger, Unicode, XmlAttribute
from spyne.model.complex import XmlData

from hpwsn_client.wsn.soap.names import TEV, WSA, WSN_BR, WSNT, WSRF_RL, WSRF_RP


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


GetResourceProperty = Unicode
"""The request is a QName as text; its operation is declared with the name of the request."""


class GetMultipleResourceProperties(ComplexModel):
    __namespace__ = WSRF_RP
    ResourceProperty = Unicode(min_occurs=1, max_occurs="unbounded", nillable=False)


class QueryResourceProperties(ComplexModel):
    __namespace__ = WSRF_RP
    QueryExpression = AnyXml(min_occurs=1, nillable=False)


class Destroy(ComplexModel):
    __namespace__ = WSRF_RL
    Extension = AnyXml


class SetTerminationTime(ComplexModel):
    __namespace__ = WSRF_RL
    RequestedTerminationTime = Unicode
    RequestedLifetimeDuration = Unicode


class CreatePullPointSubscription(ComplexModel):
    __namespace__ = TEV
    Filter = AnyXml
    InitialTerminationTime = Unicode
    SubscriptionPolicy = AnyXml


class PullMessages(ComplexModel):
    __namespace__ = TEV
    Timeout = Unicode(min_occurs=1)
    MessageLimit = Unicode(min_occurs=1)


class Seek(ComplexModel):
    __namespace__ = TEV
    UtcTime = Unicode(min_occurs=1)
    Reverse = Unicode


class SetSynchronizationPoint(ComplexModel):
    __namespace__ = TEV
    Extension = AnyXml


class GetEventProperties(ComplexModel):
    __namespace__ = TEV
    Extension = AnyXml


class GetServiceCapabilities(ComplexModel):
    __namespace__ = TEV
    Extension = AnyXml
