"""The requests of the original's clients as its author printed them, and a delivery to their receivers."""

CREATE = """<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
  xmlns:org="http://org.apache.servicemix.application">
<soapenv:Header/>
<soapenv:Body>
<org:WsnProcess>
<wsnt:CreatePullPoint xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2">
{name}</wsnt:CreatePullPoint>
</org:WsnProcess>
</soapenv:Body>
</soapenv:Envelope>
"""

SUBSCRIBE = """<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
  xmlns:org="http://org.apache.servicemix.application">
<soapenv:Header/>
<soapenv:Body>
<org:WsnProcess>
<wsnt:Subscribe xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2"
  xmlns:wsa="http://www.w3.org/2005/08/addressing">
<wsnt:ConsumerReference>
<wsa:Address>
endpoint:{endpoint}
</wsa:Address>
</wsnt:ConsumerReference>
<wsnt:Filter>
<wsnt:TopicExpression Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple">
{topic}
</wsnt:TopicExpression>
</wsnt:Filter>
<wsnt:SubscriberAddress>
{receiver}
</wsnt:SubscriberAddress>
</wsnt:Subscribe>
</org:WsnProcess>
</soapenv:Body>
</soapenv:Envelope>
"""

UNSUBSCRIBE_BY_HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
  xmlns:org="http://org.apache.servicemix.application">
<soapenv:Header>
<wsa:Action xmlns:wsa="http://www.w3.org/2005/08/addressing">
http://docs.oasis-open.org/wsn/bw-2/SubscriptionManager/UnsubscribeRequest
</wsa:Action>
<wsa:To xmlns:wsa="http://www.w3.org/2005/08/addressing">
{subscription}
</wsa:To>
</soapenv:Header>
<soapenv:Body>
<org:WsnProcess>
<wsnt:Unsubscribe xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2"/>
</org:WsnProcess>
</soapenv:Body>
</soapenv:Envelope>
"""

UNSUBSCRIBE_BY_BODY = """<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
  xmlns:org="http://org.apache.servicemix.application">
<soapenv:Header/>
<soapenv:Body>
<org:WsnProcess>
<wsnt:Unsubscribe xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2">
<wsa:To xmlns:wsa="http://www.w3.org/2005/08/addressing">
{subscription}
</wsa:To>
</wsnt:Unsubscribe>
</org:WsnProcess>
</soapenv:Body>
</soapenv:Envelope>
"""

NOTIFICATION = """<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
  xmlns:org="http://org.apache.servicemix.application">
<soapenv:Header/>
<soapenv:Body>
<org:WsnProcess>
<wsnt:NotificationMessage xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2">
<wsnt:Topic Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple">
{topic}
</wsnt:Topic>
<wsnt:Package>
<Identification>
1235324366:344
</Identification>
<Fragment>{fragment}</Fragment>
</wsnt:Package>
<wsnt:Message>{message}</wsnt:Message>
</wsnt:NotificationMessage>
</org:WsnProcess>
</soapenv:Body>
</soapenv:Envelope>
"""

DELIVERY = (
    '<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Header>'
    '<wsa:To xmlns:wsa="http://www.w3.org/2005/08/addressing">{receiver}</wsa:To>'
    '<wsa:Action xmlns:wsa="http://www.w3.org/2005/08/addressing">'
    "http://docs.oasis-open.org/wsn/bw-2/NotificationConsumer/Notify</wsa:Action>"
    '<wsa:MessageID xmlns:wsa="http://www.w3.org/2005/08/addressing">ID</wsa:MessageID>'
    '</soap:Header><soap:Body><wsnt:Notify xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2">'
    '<wsnt:NotificationMessage xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2">'
    '<wsnt:SubscriptionReference xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2"'
    ' xmlns:wsa="http://www.w3.org/2005/08/addressing"><wsa:Address>{subscription}</wsa:Address>'
    "</wsnt:SubscriptionReference>"
    '<wsnt:Topic xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2"'
    ' Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple">{topic}</wsnt:Topic>'
    '<wsnt:Message xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2">{message}</wsnt:Message>'
    "</wsnt:NotificationMessage></wsnt:Notify></soap:Body></soap:Envelope>"
)
