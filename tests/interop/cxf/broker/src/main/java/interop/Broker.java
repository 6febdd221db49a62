package interop;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;

import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.cxf.wsn.services.JaxwsCreatePullPoint;
import org.apache.cxf.wsn.services.JaxwsNotificationBroker;

/**
 * CXF's broker on an embedded ActiveMQ that is reached inside the process only. Tells `ready URL`, under which are
 * NotificationBroker and CreatePullPoint, and ends with its standard input.
 */
public final class Broker {
    private Broker() {
    }

    public static void main(String[] arguments) throws Exception {
        startActiveMq();
        ActiveMQConnectionFactory connections = new ActiveMQConnectionFactory("vm://0");
        String root = "http://127.0.0.1:" + freePort() + "/wsn";
        JaxwsNotificationBroker broker = new JaxwsNotificationBroker("WSNotificationBroker", connections);
        broker.setAddress(root + "/NotificationBroker");
        broker.init();
        JaxwsCreatePullPoint pullPoints = new JaxwsCreatePullPoint("CreatePullPoint", connections);
        pullPoints.setAddress(root + "/CreatePullPoint");
        pullPoints.init();
        System.out.println("ready " + root);
        System.out.flush();
        while (System.in.read() >= 0) {
            continue;
        }
        System.exit(0);
    }

    private static void startActiveMq() throws Exception {
        Configuration configuration = new ConfigurationImpl()
            // Where CXF's broker hears of consumers that come and go, for publishers on demand.
            .setManagementNotificationAddress(SimpleString.toSimpleString("activemq.notifications"))
            .setSecurityEnabled(false)
            .setPersistenceEnabled(false)
            .addAcceptorConfiguration("vm", "vm://0");
        EmbeddedActiveMQ server = new EmbeddedActiveMQ();
        server.setConfiguration(configuration);
        server.start();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
