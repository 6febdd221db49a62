package interop;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Callable;

import javax.xml.namespace.QName;

import jakarta.xml.bind.JAXBElement;
import jakarta.xml.ws.wsaddressing.W3CEndpointReference;
import org.apache.cxf.wsn.client.CreatePullPoint;
import org.apache.cxf.wsn.client.NotificationBroker;
import org.apache.cxf.wsn.client.PullPoint;
import org.apache.cxf.wsn.client.Referencable;
import org.apache.cxf.wsn.client.Subscription;
import org.apache.cxf.wsn.util.WSNHelper;

/** What one scenario plays on: the brokers, a topic of its own, and endpoints that end with it. */
final class Stage implements AutoCloseable {
    static final String NAMESPACE = "urn:example:interop";

    final NotificationBroker broker;
    /** A broker whose topics are fixed; `fixed` is one of them. */
    final NotificationBroker fixed;
    final String topic;

    private final String brokerUrl;
    private final String endpoints;
    private final Deque<AutoCloseable> open = new ArrayDeque<>();
    private int number;

    Stage(String brokerUrl, String fixedUrl, String endpoints, String topic) {
        this.brokerUrl = brokerUrl;
        this.broker = new NotificationBroker(brokerUrl);
        this.fixed = new NotificationBroker(fixedUrl);
        this.endpoints = endpoints;
        this.topic = topic;
    }

    /** The broker, for payloads of these types. */
    NotificationBroker brokerFor(Class<?>... types) {
        return new NotificationBroker(brokerUrl, types);
    }

    Inbox inbox(Class<?>... types) {
        return closing(new Inbox(address(), types));
    }

    RawInbox rawInbox(String binding) {
        return closing(new RawInbox(address(), binding));
    }

    OnDemand publisher() {
        return closing(new OnDemand(address()));
    }

    CreatePullPoint pullPoints() {
        return new CreatePullPoint(brokerUrl);
    }

    PullPoint pullPoint() throws Exception {
        return closing(pullPoints().create(), PullPoint::destroy);
    }

    /** A subscription that ends with the scenario. */
    Subscription subscribe(Referencable consumer) throws Exception {
        return closing(broker.subscribe(consumer, topic), Subscription::unsubscribe);
    }

    void notify(String text) {
        broker.notify(topic, reading(text));
    }

    static JAXBElement<String> reading(String text) {
        return new JAXBElement<>(new QName(NAMESPACE, "reading"), String.class, text);
    }

    static String address(W3CEndpointReference reference) {
        return WSNHelper.getInstance().getWSAAddress(reference);
    }

    /** Wait until the node's operators see the subscription in this state. */
    void waitForState(Subscription subscription, String state) throws Exception {
        String id = address(subscription.getEpr()).replaceAll(".*/", "");
        String url = brokerUrl.replaceAll("/wsn$", "/subscriptions/") + id;
        waitUntil(() -> get(url).matches("(?s).*\"state\"\\s*:\\s*\"" + state + "\".*"), "state " + state);
    }

    static void waitUntil(Callable<Boolean> condition, String what) throws Exception {
        long end = System.nanoTime() + Inbox.PATIENCE * 1_000_000_000L;
        while (!condition.call()) {
            Check.that(System.nanoTime() < end, "not within " + Inbox.PATIENCE + " s: " + what);
            Thread.sleep(20);
        }
    }

    private static String get(String url) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).build();
        return HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body();
    }

    String address() {
        return endpoints + "/" + topic + "/" + ++number;
    }

    private <T extends AutoCloseable> T closing(T resource) {
        open.push(resource);
        return resource;
    }

    private <T> T closing(T resource, Ending<T> ending) {
        open.push(() -> ending.end(resource));
        return resource;
    }

    @FunctionalInterface
    private interface Ending<T> {
        void end(T resource) throws Exception;
    }

    /** End all of it; a resource that the scenario has ended itself is gone already. */
    @Override
    public void close() {
        while (!open.isEmpty()) {
            try {
                open.pop().close();
            } catch (Exception gone) {
                continue;
            }
        }
    }
}
