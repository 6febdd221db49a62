package interop;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import jakarta.xml.ws.wsaddressing.W3CEndpointReference;
import org.apache.cxf.wsn.client.Consumer;
import org.apache.cxf.wsn.client.Referencable;
import org.oasis_open.docs.wsn.b_2.NotificationMessageHolderType;
import org.w3c.dom.Element;

/** CXF's Consumer with a queue behind it. */
final class Inbox implements Referencable, AutoCloseable {
    /** Seconds; only a failure takes so long. */
    static final int PATIENCE = 200;

    private final LinkedBlockingQueue<NotificationMessageHolderType> arrived = new LinkedBlockingQueue<>();
    private final Consumer consumer;

    Inbox(String address, Class<?>... types) {
        consumer = new Consumer(arrived::add, address, types);
    }

    @Override
    public W3CEndpointReference getEpr() {
        return consumer.getEpr();
    }

    /** The next notification. */
    NotificationMessageHolderType take() throws InterruptedException {
        NotificationMessageHolderType next = arrived.poll(PATIENCE, TimeUnit.SECONDS);
        Check.that(next != null, "no notification within " + PATIENCE + " s");
        return next;
    }

    /** The text of the next notification's payload. */
    String takeText() throws InterruptedException {
        return text(take());
    }

    boolean isEmpty() {
        return arrived.isEmpty();
    }

    static String text(NotificationMessageHolderType message) {
        return ((Element) message.getMessage().getAny()).getTextContent();
    }

    @Override
    public void close() {
        consumer.stop();
    }
}
