"""Commands for sensors on demand reach the broker, the latest of each, whatever the connection does."""

from __future__ import annotations

from hpwsn.sensors.gateways.mqtt_commands import SENT, MqttCommands
from hpwsn.sensors.gateways.mqtt_topics import TopicTemplate


class Broker:
    """Takes commands while it is connected, and confirms those that it is told to."""

    def __init__(self) -> None:
        self.connected = False
        self.sent: list[tuple[str, bytes]] = []
        self.commands = MqttCommands(TopicTemplate("s/{sensor}/wanted"), self.publish)

    def publish(self, topic: str, payload: bytes) -> int | None:
        if not self.connected:
            return None
        self.sent.append((topic, payload))
        return len(self.sent)

    def connect(self, session: bool = True) -> None:
        self.connected = True
        self.commands.up(session)

    def confirm_all(self, refused: str | None = None) -> None:
        number = 0
        while number < len(self.sent):
            number += 1
            self.commands.published(number, refused)


def test_a_command_is_a_retained_true_false_or_nothing() -> None:
    broker = Broker()
    broker.connect()
    for wanted in (True, False, None):
        broker.commands.tell("s1", wanted)
    assert broker.sent == [("s/s1/wanted", b"true"), ("s/s1/wanted", b"false"), ("s/s1/wanted", b"")]


def test_without_a_connection_only_the_latest_command_waits() -> None:
    broker = Broker()
    broker.commands.tell("s1", True)
    broker.commands.tell("s2", True)
    broker.commands.tell("s1", False)
    assert broker.commands.unconfirmed == 2
    broker.connect()
    assert sorted(broker.sent) == [("s/s1/wanted", b"false"), ("s/s2/wanted", b"true")]
    broker.confirm_all()
    assert broker.commands.unconfirmed == 0


def test_an_unconfirmed_command_is_sent_again_with_its_latest_value() -> None:
    broker = Broker()
    broker.connect()
    broker.commands.tell("s1", True)
    broker.connected = False
    broker.commands.tell("s1", False)
    broker.connect()
    assert broker.sent == [("s/s1/wanted", b"true"), ("s/s1/wanted", b"false")]
    broker.confirm_all()
    broker.connect()
    assert len(broker.sent) == 2


def test_a_broker_that_lost_its_session_is_told_everything_again() -> None:
    broker = Broker()
    broker.connect()
    broker.commands.tell("s1", True)
    broker.commands.tell("s2", False)
    broker.commands.tell("s3", None)
    broker.confirm_all()
    broker.connect(session=False)
    assert broker.sent[3:] == [("s/s1/wanted", b"true"), ("s/s2/wanted", b"false")]


def test_few_commands_are_unconfirmed_at_a_time_and_all_get_through() -> None:
    broker = Broker()
    for number in range(3 * SENT):
        broker.commands.tell(f"s{number}", True)
    broker.connect()
    assert len(broker.sent) == SENT
    broker.confirm_all()
    assert len(broker.sent) == 3 * SENT
    assert broker.commands.unconfirmed == 0


def test_a_refusal_is_known_until_a_command_is_taken_and_is_repeated_with_the_next_connection() -> None:
    broker = Broker()
    broker.connect()
    broker.commands.tell("s1", True)
    broker.confirm_all("Not authorized")
    assert broker.commands.refused == "Not authorized"
    broker.connect()
    assert broker.sent == [("s/s1/wanted", b"true")] * 2
    broker.commands.published(2, None)
    assert broker.commands.refused is None
