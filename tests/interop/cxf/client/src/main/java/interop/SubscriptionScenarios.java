package interop;

import java.util.List;
import java.util.Map;

import javax.xml.namespace.QName;

import jakarta.xml.bind.JAXBContext;
import jakarta.xml.bind.JAXBException;
import jakarta.xml.ws.Service;
import jakarta.xml.ws.soap.SOAPBinding;
import jakarta.xml.ws.wsaddressing.W3CEndpointReference;
import org.apache.cxf.wsn.client.Subscription;
import org.oasis_open.docs.wsn.b_2.FilterType;
import org.oasis_open.docs.wsn.b_2.NotificationMessageHolderType;
import org.oasis_open.docs.wsn.b_2.ObjectFactory;
import org.oasis_open.docs.wsn.b_2.Subscribe;
import org.oasis_open.docs.wsn.b_2.SubscribeResponse;
import org.oasis_open.docs.wsn.b_2.TopicExpressionType;
import org.oasis_open.docs.wsn.b_2.Unsubscribe;
import org.oasis_open.docs.wsn.b_2.UnsubscribeResponse;
import org.oasis_open.docs.wsrf.rw_2.ResourceUnknownFault;
import org.w3c.dom.Element;

/** Subscriptions, from the first notification to the end. */
final class SubscriptionScenarios {
    private SubscriptionScenarios() {
    }

    static void addTo(Map<String, Scenario> scenarios) {
        scenarios.put("subscribe-and-notify", SubscriptionScenarios::subscribeAndNotify);
        scenarios.put("notifications-arrive-in-order", SubscriptionScenarios::inOrder);
        scenarios.put("two-subscribers-get-the-same", SubscriptionScenarios::twoSubscribers);
        scenarios.put("another-topic-stays-away", SubscriptionScenarios::anotherTopic);
        scenarios.put("topic-of-several-names", SubscriptionScenarios::severalNames);
        scenarios.put("subscribe-without-a-topic", SubscriptionScenarios::withoutTopic);
        scenarios.put("content-filter", SubscriptionScenarios::contentFilter);
        scenarios.put("use-raw", SubscriptionScenarios::useRaw);
        scenarios.put("renew-a-live-subscription", SubscriptionScenarios::renewLive);
        scenarios.put("renew-within-the-grace", SubscriptionScenarios::renewExpired);
        scenarios.put("pause-and-resume", SubscriptionScenarios::pauseAndResume);
        scenarios.put("unsubscribe-ends-delivery", SubscriptionScenarios::unsubscribe);
        scenarios.put("unsubscribe-twice-is-unknown", SubscriptionScenarios::unsubscribeTwice);
        scenarios.put("subscription-by-its-address", SubscriptionScenarios::byAddress);
        scenarios.put("get-current-message", SubscriptionScenarios::currentMessage);
        scenarios.put("soap-1.2", SubscriptionScenarios::soap12);
    }

    private static void subscribeAndNotify(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Subscription subscription = stage.subscribe(inbox);
        stage.notify("21.5");
        NotificationMessageHolderType message = inbox.take();
        Check.equal(Stage.address(subscription.getEpr()), Stage.address(message.getSubscriptionReference()));
        Check.equal(List.of(stage.topic), message.getTopic().getContent());
        Element reading = (Element) message.getMessage().getAny();
        Check.equal(Stage.NAMESPACE, reading.getNamespaceURI());
        Check.equal("reading", reading.getLocalName());
        Check.equal("21.5", reading.getTextContent());
    }

    private static void inOrder(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        stage.subscribe(inbox);
        for (int number = 0; number < 20; number++) {
            stage.notify("n" + number);
        }
        for (int number = 0; number < 20; number++) {
            Check.equal("n" + number, inbox.takeText());
        }
    }

    private static void twoSubscribers(Stage stage) throws Exception {
        Inbox first = stage.inbox();
        Inbox second = stage.inbox();
        stage.subscribe(first);
        stage.subscribe(second);
        stage.notify("both");
        Check.equal("both", first.takeText());
        Check.equal("both", second.takeText());
    }

    private static void anotherTopic(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        stage.subscribe(inbox);
        stage.broker.notify("another" + stage.topic, Stage.reading("unwanted"));
        stage.notify("wanted");
        Check.equal("wanted", inbox.takeText());
    }

    private static void severalNames(Stage stage) throws Exception {
        Inbox whole = stage.inbox();
        Inbox part = stage.inbox();
        stage.subscribe(whole);
        Subscription hall = stage.broker.subscribe(part, stage.topic + "/hall");
        stage.broker.notify(stage.topic + "/roof", Stage.reading("roof"));
        stage.broker.notify(stage.topic + ":hall", Stage.reading("hall"));
        Check.equal("roof", whole.takeText());
        Check.equal("hall", whole.takeText());
        Check.equal("hall", part.takeText());
        hall.unsubscribe();
    }

    private static void withoutTopic(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Subscription all = stage.broker.subscribe(inbox, null);
        stage.notify("on a topic");
        stage.broker.notify(null, Stage.reading("on none"));
        Check.equal("on a topic", inbox.takeText());
        NotificationMessageHolderType message = inbox.take();
        Check.equal("on none", Inbox.text(message));
        Check.equal(null, message.getTopic());
        all.unsubscribe();
    }

    private static void contentFilter(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Subscription hot = stage.broker.subscribe(inbox, stage.topic, "number(.) > 20");
        stage.notify("19");
        stage.notify("21");
        Check.equal("21", inbox.takeText());
        hot.unsubscribe();
    }

    private static void useRaw(Stage stage) throws Exception {
        RawInbox inbox = stage.rawInbox(SOAPBinding.SOAP11HTTP_BINDING);
        Subscription raw = stage.broker.subscribe(inbox, stage.topic, null, true, null);
        stage.notify("bare");
        Element payload = inbox.take();
        Check.equal("reading", payload.getLocalName());
        Check.equal("bare", payload.getTextContent());
        raw.unsubscribe();
    }

    private static void renewLive(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Subscription subscription = stage.broker.subscribe(inbox, stage.topic, null, false, "PT30S");
        subscription.renew("PT1H");
        subscription.renew("2999-01-01T00:00:00Z");
        stage.notify("still there");
        Check.equal("still there", inbox.takeText());
        subscription.unsubscribe();
    }

    private static void renewExpired(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Inbox witness = stage.inbox();
        stage.subscribe(witness);
        Subscription subscription = stage.broker.subscribe(inbox, stage.topic, null, false, "PT0.5S");
        stage.waitForState(subscription, "expired");
        stage.notify("meanwhile");
        Check.equal("meanwhile", witness.takeText());
        Check.that(inbox.isEmpty(), "an expired subscription has got a notification");
        subscription.renew("PT1M");
        stage.notify("afterwards");
        Check.equal("meanwhile", inbox.takeText());
        NotificationMessageHolderType message = inbox.take();
        Check.equal("afterwards", Inbox.text(message));
        Check.equal(Stage.address(subscription.getEpr()), Stage.address(message.getSubscriptionReference()));
        subscription.unsubscribe();
    }

    private static void pauseAndResume(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Inbox witness = stage.inbox();
        Subscription subscription = stage.subscribe(inbox);
        stage.subscribe(witness);
        subscription.pause();
        stage.notify("held back");
        Check.equal("held back", witness.takeText());
        Check.that(inbox.isEmpty(), "a paused subscription has got a notification");
        subscription.resume();
        stage.notify("after");
        Check.equal("held back", inbox.takeText());
        Check.equal("after", inbox.takeText());
    }

    private static void unsubscribe(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Inbox witness = stage.inbox();
        Subscription subscription = stage.subscribe(inbox);
        stage.subscribe(witness);
        stage.notify("first");
        Check.equal("first", inbox.takeText());
        subscription.unsubscribe();
        stage.notify("second");
        Check.equal("first", witness.takeText());
        Check.equal("second", witness.takeText());
        Check.that(inbox.isEmpty(), "a subscription that was ended has got a notification");
    }

    private static void unsubscribeTwice(Stage stage) throws Exception {
        Subscription subscription = stage.subscribe(stage.inbox());
        subscription.unsubscribe();
        Check.raises(ResourceUnknownFault.class, () -> {
            subscription.unsubscribe();
            return null;
        });
    }

    private static void byAddress(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Subscription kept = new Subscription(Stage.address(stage.subscribe(inbox).getEpr()));
        kept.renew("PT1H");
        kept.unsubscribe();
        Check.raises(ResourceUnknownFault.class, () -> {
            kept.renew("PT1H");
            return null;
        });
    }

    private static void currentMessage(Stage stage) throws Exception {
        stage.notify("before");
        stage.notify("current");
        List<Object> current = stage.broker.getCurrentMessage(stage.topic);
        Check.equal(1, current.size());
        Check.equal("current", ((Element) current.get(0)).getTextContent());
    }

    private static void soap12(Stage stage) throws Exception {
        RawInbox inbox = stage.rawInbox(SOAPBinding.SOAP12HTTP_BINDING);
        TopicExpressionType expression = new TopicExpressionType();
        expression.getContent().add(stage.topic);
        Subscribe request = new Subscribe();
        request.setConsumerReference(inbox.getEpr());
        request.setFilter(new FilterType());
        request.getFilter().getAny().add(new ObjectFactory().createTopicExpression(expression));
        SubscribeResponse answer = (SubscribeResponse) soap12(stage.broker.getEpr(), request);
        stage.notify("in SOAP 1.2");
        Element notify = inbox.take();
        Check.equal("Notify", notify.getLocalName());
        Check.equal("in SOAP 1.2", notify.getElementsByTagNameNS(Stage.NAMESPACE, "reading").item(0).getTextContent());
        Object ended = soap12(answer.getSubscriptionReference(), new Unsubscribe());
        Check.equal(UnsubscribeResponse.class, ended.getClass());
    }

    /** The answer to a request in SOAP 1.2, which CXF's client classes do not speak by themselves. */
    private static Object soap12(W3CEndpointReference target, Object request) throws JAXBException {
        QName port = new QName(Stage.NAMESPACE, "Port");
        Service service = Service.create(new QName(Stage.NAMESPACE, "Service"));
        service.addPort(port, SOAPBinding.SOAP12HTTP_BINDING, Stage.address(target));
        JAXBContext types = JAXBContext.newInstance(ObjectFactory.class);
        return service.createDispatch(port, types, Service.Mode.PAYLOAD).invoke(request);
    }
}
