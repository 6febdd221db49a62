package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.cxf.wsn.client.PullPoint;
import org.apache.cxf.wsn.client.Subscription;
import org.oasis_open.docs.wsn.b_2.NotificationMessageHolderType;
import org.oasis_open.docs.wsrf.rw_2.ResourceUnknownFault;

/** Pull points: notifications that are fetched. */
final class PullPointScenarios {
    private PullPointScenarios() {
    }

    static void addTo(Map<String, Scenario> scenarios) {
        scenarios.put("pull-point", PullPointScenarios::pull);
        scenarios.put("pull-point-with-a-queue-name", PullPointScenarios::queueName);
        scenarios.put("pull-point-in-portions", PullPointScenarios::portions);
        scenarios.put("pull-point-that-is-empty", PullPointScenarios::empty);
        scenarios.put("pull-point-by-its-address", PullPointScenarios::byAddress);
        scenarios.put("pull-point-destroyed-is-unknown", PullPointScenarios::destroyed);
    }

    private static void pull(Stage stage) throws Exception {
        PullPoint pullPoint = stage.pullPoint();
        Subscription subscription = stage.subscribe(pullPoint);
        stage.notify("pulled");
        NotificationMessageHolderType message = next(pullPoint, 1).get(0);
        Check.equal("pulled", Inbox.text(message));
        Check.equal(Stage.address(subscription.getEpr()), Stage.address(message.getSubscriptionReference()));
        subscription.unsubscribe();
        pullPoint.destroy();
    }

    private static void queueName(Stage stage) throws Exception {
        PullPoint pullPoint = stage.pullPoints().create(stage.topic + "-queue");
        stage.subscribe(pullPoint);
        stage.notify("kept");
        PullPoint again = stage.pullPoints().create(stage.topic + "-queue");
        Check.equal(Stage.address(pullPoint.getEpr()), Stage.address(again.getEpr()));
        Check.equal("kept", Inbox.text(next(again, 1).get(0)));
        pullPoint.destroy();
    }

    private static void portions(Stage stage) throws Exception {
        PullPoint pullPoint = stage.pullPoint();
        stage.subscribe(pullPoint);
        for (int number = 0; number < 5; number++) {
            stage.notify("n" + number);
        }
        List<String> texts = new ArrayList<>();
        Stage.waitUntil(() -> {
            List<NotificationMessageHolderType> messages = pullPoint.getMessages(2);
            Check.that(messages.size() <= 2, "more messages than were asked for: " + messages.size());
            messages.forEach(message -> texts.add(Inbox.text(message)));
            return texts.size() >= 5;
        }, "5 messages");
        Check.equal(List.of("n0", "n1", "n2", "n3", "n4"), texts);
    }

    private static void empty(Stage stage) throws Exception {
        Check.equal(List.of(), stage.pullPoint().getMessages(10));
    }

    private static void byAddress(Stage stage) throws Exception {
        PullPoint pullPoint = new PullPoint(Stage.address(stage.pullPoint().getEpr()));
        stage.subscribe(pullPoint);
        stage.notify("by address");
        Check.equal("by address", Inbox.text(next(pullPoint, 1).get(0)));
    }

    private static void destroyed(Stage stage) throws Exception {
        PullPoint pullPoint = stage.pullPoint();
        pullPoint.destroy();
        Check.raises(ResourceUnknownFault.class, () -> pullPoint.getMessages(1));
        Check.raises(ResourceUnknownFault.class, () -> {
            pullPoint.destroy();
            return null;
        });
    }

    private static List<NotificationMessageHolderType> next(PullPoint pullPoint, int number) throws Exception {
        List<NotificationMessageHolderType> messages = new ArrayList<>();
        Stage.waitUntil(() -> {
            messages.addAll(pullPoint.getMessages(10));
            return messages.size() >= number;
        }, number + " messages");
        Check.equal(number, messages.size());
        return messages;
    }
}
