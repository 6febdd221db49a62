package interop;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import javax.xml.transform.Source;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMResult;

import jakarta.xml.ws.Endpoint;
import jakarta.xml.ws.Provider;
import jakarta.xml.ws.ServiceMode;
import jakarta.xml.ws.Service.Mode;
import jakarta.xml.ws.WebServiceProvider;
import jakarta.xml.ws.wsaddressing.W3CEndpointReference;
import org.apache.cxf.wsn.client.Referencable;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

/** A consumer that keeps what is in the body of each request: a raw notification, or a Notify. */
@WebServiceProvider
@ServiceMode(Mode.PAYLOAD)
public final class RawInbox implements Provider<Source>, Referencable, AutoCloseable {
    private final LinkedBlockingQueue<Element> arrived = new LinkedBlockingQueue<>();
    private final Endpoint endpoint;

    /** The binding says which version of SOAP it takes. */
    RawInbox(String address, String binding) {
        endpoint = Endpoint.create(binding, this);
        endpoint.publish(address);
    }

    @Override
    public Source invoke(Source request) {
        try {
            DOMResult result = new DOMResult();
            TransformerFactory.newInstance().newTransformer().transform(request, result);
            arrived.add(((Document) result.getNode()).getDocumentElement());
            return null;
        } catch (javax.xml.transform.TransformerException error) {
            throw new IllegalStateException(error);
        }
    }

    Element take() throws InterruptedException {
        Element next = arrived.poll(Inbox.PATIENCE, TimeUnit.SECONDS);
        Check.that(next != null, "no raw notification within " + Inbox.PATIENCE + " s");
        return next;
    }

    @Override
    public W3CEndpointReference getEpr() {
        return endpoint.getEndpointReference(W3CEndpointReference.class);
    }

    @Override
    public void close() {
        endpoint.stop();
    }
}
