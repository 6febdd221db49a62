package interop;

import java.io.StringReader;
import java.util.Map;

import javax.xml.parsers.DocumentBuilderFactory;

import org.w3c.dom.Element;
import org.xml.sax.InputSource;

/** What arrives is what was published. */
final class PayloadScenarios {
    private static final String NESTED =
        "<m:station xmlns:m='urn:example:weather' xmlns='urn:example:plain' m:id='7'>"
        + "<name>\u4eac \u00e6\u00f8\u00e5 &amp; &lt;</name><m:wind unit='m/s'>3.5</m:wind></m:station>";

    private PayloadScenarios() {
    }

    static void addTo(Map<String, Scenario> scenarios) {
        scenarios.put("payload-of-a-custom-type", PayloadScenarios::customType);
        scenarios.put("payload-as-a-tree", PayloadScenarios::tree);
        scenarios.put("large-payload", PayloadScenarios::large);
    }

    private static void customType(Stage stage) throws Exception {
        Inbox inbox = stage.inbox(Reading.class);
        stage.subscribe(inbox);
        stage.brokerFor(Reading.class).notify(stage.topic, new Reading("hall", 21.5));
        Object payload = inbox.take().getMessage().getAny();
        Check.equal(Reading.class, payload.getClass());
        Check.equal("hall=21.5", payload.toString());
    }

    private static void tree(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        stage.subscribe(inbox);
        Element sent = parse(NESTED);
        stage.broker.notify(stage.topic, sent);
        Element received = (Element) inbox.take().getMessage().getAny();
        Check.equal(sent.getNamespaceURI(), received.getNamespaceURI());
        Check.equal(sent.getTextContent(), received.getTextContent());
        Check.equal("7", received.getAttributeNS("urn:example:weather", "id"));
        Check.equal(1, received.getElementsByTagNameNS("urn:example:plain", "name").getLength());
        Check.equal(1, received.getElementsByTagNameNS("urn:example:weather", "wind").getLength());
    }

    private static void large(Stage stage) throws Exception {
        Inbox inbox = stage.inbox();
        stage.subscribe(inbox);
        String text = "0123456789abcdef".repeat(1 << 16);
        stage.notify(text);
        Check.that(text.equals(inbox.takeText()), "a payload of 1 MiB has changed on its way");
    }

    private static Element parse(String text) throws Exception {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setNamespaceAware(true);
        return factory.newDocumentBuilder().parse(new InputSource(new StringReader(text))).getDocumentElement();
    }
}
