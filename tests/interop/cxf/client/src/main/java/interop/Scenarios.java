package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Plays scenarios on a node, by name. Arguments: the URL of a node, and of one whose topics are fixed. Standard input has
 * a name a line; standard output tells all names first, then `NAME passed` or `NAME failed: why` for each. It ends with
 * its input.
 */
public final class Scenarios {
    private Scenarios() {
    }

    public static void main(String[] arguments) throws IOException {
        Map<String, Scenario> known = new LinkedHashMap<>();
        SubscriptionScenarios.addTo(known);
        PayloadScenarios.addTo(known);
        PullPointScenarios.addTo(known);
        PublisherScenarios.addTo(known);
        FaultScenarios.addTo(known);
        String endpoints = "http://127.0.0.1:" + freePort();
        // CXF ends its server with the last endpoint of a port; this one stays.
        Inbox keeper = new Inbox(endpoints + "/keeper");
        tell("scenarios " + String.join(" ", known.keySet()));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int number = 0;
        for (String name = input.readLine(); name != null; name = input.readLine()) {
            Stage stage = new Stage(arguments[0], arguments[1], endpoints, "topic" + ++number);
            tell(name + " " + play(known.get(name), stage));
        }
        keeper.close();
        System.exit(0);
    }

    private static String play(Scenario scenario, Stage stage) {
        try (stage) {
            scenario.run(stage);
            return "passed";
        } catch (Exception | AssertionError error) {
            error.printStackTrace();
            return "failed: " + error.toString().replaceAll("\\s+", " ");
        }
    }

    private static void tell(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
