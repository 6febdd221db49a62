package interop;

import java.util.List;
import java.util.Map;

import org.apache.cxf.wsn.client.Publisher;
import org.apache.cxf.wsn.client.Registration;
import org.apache.cxf.wsn.client.Subscription;
import org.oasis_open.docs.wsn.b_2.NotificationMessageHolderType;
import org.oasis_open.docs.wsn.brw_2.PublisherRegistrationFailedFault;
import org.oasis_open.docs.wsrf.rw_2.ResourceUnknownFault;

/** Publishers that register, and publishers on demand. */
final class PublisherScenarios {
    private PublisherScenarios() {
    }

    static void addTo(Map<String, Scenario> scenarios) {
        scenarios.put("registered-publisher", PublisherScenarios::registered);
        scenarios.put("publisher-without-a-reference", PublisherScenarios::withoutReference);
        scenarios.put("publisher-of-a-custom-type", PublisherScenarios::customType);
        scenarios.put("publisher-on-demand", PublisherScenarios::onDemand);
        scenarios.put("publisher-on-demand-of-two-topics", PublisherScenarios::twoTopics);
        scenarios.put("publisher-on-demand-that-came-late", PublisherScenarios::late);
        scenarios.put("registration-destroyed-ends-the-demand", PublisherScenarios::destroyedOnDemand);
        scenarios.put("registration-destroyed-is-unknown", PublisherScenarios::destroyed);
        scenarios.put("registration-by-its-address", PublisherScenarios::byAddress);
        scenarios.put("fault-demand-without-a-reference", PublisherScenarios::demandWithoutReference);
    }

    private static void registered(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        Subscription subscription = stage.subscribe(inbox);
        OnDemand publisher = stage.publisher();
        Registration registration = stage.broker.registerPublisher(publisher, stage.topic);
        stage.broker.notify(publisher, stage.topic, Stage.reading("registered"));
        NotificationMessageHolderType message = inbox.take();
        Check.equal("registered", Inbox.text(message));
        Check.equal(Stage.address(publisher.getEpr()), Stage.address(message.getProducerReference()));
        Check.equal(Stage.address(subscription.getEpr()), Stage.address(message.getSubscriptionReference()));
        registration.destroy();
    }

    private static void withoutReference(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        stage.subscribe(inbox);
        Publisher nobody = new Publisher(null, null);
        Registration registration = stage.broker.registerPublisher(nobody, stage.topic, false);
        stage.broker.notify(nobody, stage.topic, Stage.reading("anonymous"));
        NotificationMessageHolderType message = inbox.take();
        Check.equal("anonymous", Inbox.text(message));
        Check.equal(null, message.getProducerReference());
        registration.destroy();
    }

    private static void customType(Stage stage) throws Exception {
        Inbox inbox = stage.inbox(Reading.class);
        stage.subscribe(inbox);
        OnDemand publisher = stage.publisher();
        Registration registration = stage.broker.registerPublisher(publisher, stage.topic);
        stage.brokerFor(Reading.class).notify(publisher, stage.topic, new Reading("roof", -3));
        NotificationMessageHolderType message = inbox.take();
        Check.equal("roof=-3.0", message.getMessage().getAny().toString());
        Check.equal(Stage.address(publisher.getEpr()), Stage.address(message.getProducerReference()));
        registration.destroy();
    }

    private static void onDemand(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        OnDemand publisher = stage.publisher();
        Registration registration = stage.broker.registerPublisher(publisher, stage.topic, true);
        Check.that(publisher.isEmpty(), "a publisher was subscribed to before anybody was interested");
        Subscription subscription = stage.broker.subscribe(inbox, stage.topic);
        Check.equal("subscribe " + stage.topic, publisher.take());
        stage.broker.notify(publisher, stage.topic, Stage.reading("on demand"));
        Check.equal("on demand", inbox.takeText());
        subscription.unsubscribe();
        Check.equal("unsubscribe " + stage.topic, publisher.take());
        registration.destroy();
    }

    private static void twoTopics(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        OnDemand publisher = stage.publisher();
        List<String> topics = List.of(stage.topic + "a", stage.topic + "b");
        Registration registration = stage.broker.registerPublisher(publisher, topics, true);
        Subscription second = stage.broker.subscribe(inbox, topics.get(1));
        Check.equal("subscribe " + topics.get(1), publisher.take());
        Subscription first = stage.broker.subscribe(inbox, topics.get(0));
        Check.equal("subscribe " + topics.get(0), publisher.take());
        second.unsubscribe();
        Check.equal("unsubscribe " + topics.get(1), publisher.take());
        first.unsubscribe();
        Check.equal("unsubscribe " + topics.get(0), publisher.take());
        registration.destroy();
    }

    private static void late(Stage stage) throws Exception {
        stage.subscribe(stage.inbox());
        OnDemand publisher = stage.publisher();
        Registration registration = stage.broker.registerPublisher(publisher, stage.topic, true);
        Check.equal("subscribe " + stage.topic, publisher.take());
        registration.destroy();
    }

    private static void destroyedOnDemand(Stage stage) throws Exception {
        OnDemand publisher = stage.publisher();
        stage.subscribe(stage.inbox());
        Registration registration = stage.broker.registerPublisher(publisher, stage.topic, true);
        Check.equal("subscribe " + stage.topic, publisher.take());
        registration.destroy();
        Check.equal("unsubscribe " + stage.topic, publisher.take());
    }

    private static void destroyed(Stage stage) throws Exception {
        Registration registration = stage.broker.registerPublisher(stage.publisher(), stage.topic);
        registration.destroy();
        Check.raises(ResourceUnknownFault.class, () -> {
            registration.destroy();
            return null;
        });
    }

    private static void byAddress(Stage stage) throws Exception {
        Registration made = stage.broker.registerPublisher(stage.publisher(), stage.topic);
        new Registration(Stage.address(made.getEpr())).destroy();
        Check.raises(ResourceUnknownFault.class, () -> {
            made.destroy();
            return null;
        });
    }

    private static void demandWithoutReference(Stage stage) throws Exception {
        Publisher nobody = new Publisher(null, null);
        Check.raises(PublisherRegistrationFailedFault.class,
            () -> stage.broker.registerPublisher(nobody, stage.topic, true));
    }
}
