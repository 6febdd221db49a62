package interop;

import java.util.Map;

import javax.xml.namespace.QName;

import jakarta.xml.bind.JAXBElement;
import org.apache.cxf.wsn.client.Subscription;
import org.apache.cxf.wsn.util.WSNHelper;
import org.oasis_open.docs.wsn.b_2.FilterType;
import org.oasis_open.docs.wsn.b_2.GetCurrentMessage;
import org.oasis_open.docs.wsn.b_2.ObjectFactory;
import org.oasis_open.docs.wsn.b_2.QueryExpressionType;
import org.oasis_open.docs.wsn.b_2.Subscribe;
import org.oasis_open.docs.wsn.b_2.TopicExpressionType;
import org.oasis_open.docs.wsn.bw_2.InvalidFilterFault;
import org.oasis_open.docs.wsn.bw_2.InvalidMessageContentExpressionFault;
import org.oasis_open.docs.wsn.bw_2.InvalidProducerPropertiesExpressionFault;
import org.oasis_open.docs.wsn.bw_2.InvalidTopicExpressionFault;
import org.oasis_open.docs.wsn.bw_2.MultipleTopicsSpecifiedFault;
import org.oasis_open.docs.wsn.bw_2.NoCurrentMessageOnTopicFault;
import org.oasis_open.docs.wsn.bw_2.SubscribeCreationFailedFault;
import org.oasis_open.docs.wsn.bw_2.TopicExpressionDialectUnknownFault;
import org.oasis_open.docs.wsn.bw_2.TopicNotSupportedFault;
import org.oasis_open.docs.wsn.bw_2.UnacceptableInitialTerminationTimeFault;
import org.oasis_open.docs.wsn.bw_2.UnacceptableTerminationTimeFault;
import org.oasis_open.docs.wsn.bw_2.UnrecognizedPolicyRequestFault;
import org.oasis_open.docs.wsrf.bf_2.BaseFaultType;
import org.oasis_open.docs.wsrf.rpw_2.GetResourceProperty;
import org.oasis_open.docs.wsrf.rpw_2.InvalidResourcePropertyQNameFault;

/** Each refusal is the exception that CXF has for the standard's fault, with the fault's own fields. */
final class FaultScenarios {
    private static final ObjectFactory MAKE = new ObjectFactory();
    private static final String DIALECTS = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/";
    private static final String WSNT = "http://docs.oasis-open.org/wsn/b-2";

    private FaultScenarios() {
    }

    static void addTo(Map<String, Scenario> scenarios) {
        scenarios.put("fault-unknown-topic-dialect", FaultScenarios::unknownDialect);
        scenarios.put("fault-invalid-topic", FaultScenarios::invalidTopic);
        scenarios.put("fault-topic-not-supported", FaultScenarios::topicNotSupported);
        scenarios.put("fault-invalid-filter", FaultScenarios::invalidFilter);
        scenarios.put("fault-invalid-content-filter", FaultScenarios::invalidContent);
        scenarios.put("fault-invalid-producer-properties", FaultScenarios::invalidProducerProperties);
        scenarios.put("fault-initial-time-in-the-past", FaultScenarios::initialTime);
        scenarios.put("fault-renew-into-the-past", FaultScenarios::renewTime);
        scenarios.put("fault-unrecognized-policy", FaultScenarios::policy);
        scenarios.put("fault-consumer-nowhere", FaultScenarios::nowhere);
        scenarios.put("fault-no-current-message", FaultScenarios::noCurrentMessage);
        scenarios.put("fault-several-topics", FaultScenarios::severalTopics);
        scenarios.put("resource-property", FaultScenarios::property);
        scenarios.put("fault-unknown-resource-property", FaultScenarios::unknownProperty);
    }

    private static void unknownDialect(Stage stage) throws Exception {
        Subscribe request = request(stage, topic(stage.topic, "urn:example:no-dialect"));
        described(Check.raises(TopicExpressionDialectUnknownFault.class,
            () -> stage.broker.getBroker().subscribe(request)).getFaultInfo());
    }

    private static void invalidTopic(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        described(Check.raises(InvalidTopicExpressionFault.class,
            () -> stage.broker.subscribe(inbox, "not a topic")).getFaultInfo());
    }

    private static void topicNotSupported(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Subscription subscription = stage.fixed.subscribe(inbox, "fixed");
        described(Check.raises(TopicNotSupportedFault.class,
            () -> stage.fixed.subscribe(inbox, "unfixed")).getFaultInfo());
        subscription.unsubscribe();
    }

    private static void invalidFilter(Stage stage) throws Exception {
        QName odd = new QName(Stage.NAMESPACE, "odd");
        Subscribe request = request(stage, new JAXBElement<>(odd, String.class, "x"));
        InvalidFilterFault fault = Check.raises(InvalidFilterFault.class,
            () -> stage.broker.getBroker().subscribe(request));
        described(fault.getFaultInfo());
        Check.that(fault.getFaultInfo().getUnknownFilter().contains(odd), "the fault does not name the filter");
    }

    private static void invalidContent(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        described(Check.raises(InvalidMessageContentExpressionFault.class,
            () -> stage.broker.subscribe(inbox, stage.topic, "//[")).getFaultInfo());
    }

    private static void invalidProducerProperties(Stage stage) throws Exception {
        QueryExpressionType query = new QueryExpressionType();
        query.setDialect("urn:example:no-dialect");
        query.getContent().add("true()");
        Subscribe request = request(stage, MAKE.createProducerProperties(query));
        described(Check.raises(InvalidProducerPropertiesExpressionFault.class,
            () -> stage.broker.getBroker().subscribe(request)).getFaultInfo());
    }

    private static void initialTime(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        UnacceptableInitialTerminationTimeFault fault = Check.raises(
            UnacceptableInitialTerminationTimeFault.class,
            () -> stage.broker.subscribe(inbox, stage.topic, null, false, "2001-01-01T00:00:00Z"));
        described(fault.getFaultInfo());
        Check.that(fault.getFaultInfo().getMinimumTime() != null, "the fault has no MinimumTime");
    }

    private static void renewTime(Stage stage) throws Exception {
        Subscription subscription = stage.subscribe(stage.inbox());
        UnacceptableTerminationTimeFault fault = Check.raises(UnacceptableTerminationTimeFault.class, () -> {
            subscription.renew("2001-01-01T00:00:00Z");
            return null;
        });
        described(fault.getFaultInfo());
    }

    private static void policy(Stage stage) throws Exception {
        Subscribe request = request(stage, topic(stage.topic, DIALECTS + "Simple"));
        request.setSubscriptionPolicy(new Subscribe.SubscriptionPolicy());
        QName odd = new QName(Stage.NAMESPACE, "odd");
        request.getSubscriptionPolicy().getAny().add(new JAXBElement<>(odd, String.class, "x"));
        UnrecognizedPolicyRequestFault fault = Check.raises(UnrecognizedPolicyRequestFault.class,
            () -> stage.broker.getBroker().subscribe(request));
        described(fault.getFaultInfo());
        Check.that(fault.getFaultInfo().getUnrecognizedPolicy().contains(odd), "the fault does not name it");
    }

    private static void nowhere(Stage stage) throws Exception {
        String anonymous = "http://www.w3.org/2005/08/addressing/anonymous";
        described(Check.raises(SubscribeCreationFailedFault.class, () -> stage.broker.subscribe(
            () -> WSNHelper.getInstance().createWSA(anonymous), stage.topic)).getFaultInfo());
    }

    private static void noCurrentMessage(Stage stage) throws Exception {
        stage.subscribe(stage.inbox());
        described(Check.raises(NoCurrentMessageOnTopicFault.class,
            () -> stage.broker.getCurrentMessage(stage.topic)).getFaultInfo());
    }

    private static void severalTopics(Stage stage) throws Exception {
        stage.broker.notify(stage.topic + "/a", Stage.reading("a"));
        stage.broker.notify(stage.topic + "/b", Stage.reading("b"));
        GetCurrentMessage request = new GetCurrentMessage();
        request.setTopic(topic(stage.topic + "/*", DIALECTS + "Full").getValue());
        described(Check.raises(MultipleTopicsSpecifiedFault.class,
            () -> stage.broker.getBroker().getCurrentMessage(request)).getFaultInfo());
    }

    private static void property(Stage stage) throws Exception {
        Check.equal(1, properties(stage).getResourceProperty(new QName(WSNT, "FixedTopicSet")).getAny().size());
    }

    private static void unknownProperty(Stage stage) throws Exception {
        described(Check.raises(InvalidResourcePropertyQNameFault.class,
            () -> properties(stage).getResourceProperty(new QName(Stage.NAMESPACE, "odd"))).getFaultInfo());
    }

    private static GetResourceProperty properties(Stage stage) {
        return WSNHelper.getInstance().getPort(stage.broker.getEpr(), GetResourceProperty.class);
    }

    private static Subscribe request(Stage stage, JAXBElement<?> filter) {
        Subscribe request = new Subscribe();
        request.setConsumerReference(stage.inbox().getEpr());
        request.setFilter(new FilterType());
        request.getFilter().getAny().add(filter);
        return request;
    }

    private static JAXBElement<TopicExpressionType> topic(String text, String dialect) {
        TopicExpressionType expression = new TopicExpressionType();
        expression.setDialect(dialect);
        expression.getContent().add(text);
        return MAKE.createTopicExpression(expression);
    }

    /** A fault tells when it happened, and a person why. */
    private static void described(BaseFaultType fault) {
        Check.that(fault.getTimestamp() != null, "the fault has no Timestamp");
        Check.equal(1, fault.getDescription().size());
        Check.that(!fault.getDescription().get(0).getValue().isBlank(), "the fault has no Description");
    }
}
