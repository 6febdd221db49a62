package interop;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import jakarta.xml.ws.wsaddressing.W3CEndpointReference;
import org.apache.cxf.wsn.client.Publisher;
import org.apache.cxf.wsn.client.Referencable;
import org.oasis_open.docs.wsn.b_2.TopicExpressionType;

/** CXF's Publisher, which remembers what the broker asked it for. */
final class OnDemand implements Publisher.Callback, Referencable, AutoCloseable {
    private final LinkedBlockingQueue<String> asked = new LinkedBlockingQueue<>();
    private final Publisher publisher;

    OnDemand(String address) {
        publisher = new Publisher(this, address);
    }

    @Override
    public void subscribe(TopicExpressionType topic) {
        asked.add("subscribe " + name(topic));
    }

    @Override
    public void unsubscribe(TopicExpressionType topic) {
        asked.add("unsubscribe " + name(topic));
    }

    private static String name(TopicExpressionType topic) {
        return topic.getContent().get(0).toString().trim();
    }

    /** What the broker asked for next, such as `subscribe TOPIC`. */
    String take() throws InterruptedException {
        String next = asked.poll(Inbox.PATIENCE, TimeUnit.SECONDS);
        Check.that(next != null, "the broker asked for nothing within " + Inbox.PATIENCE + " s");
        return next;
    }

    boolean isEmpty() {
        return asked.isEmpty();
    }

    @Override
    public W3CEndpointReference getEpr() {
        return publisher.getEpr();
    }

    @Override
    public void close() {
        publisher.stop();
    }
}
