"""The receiver over real sockets: deliveries in, answers out, and what the broker may conclude from them."""

import asyncio
import logging

import aiohttp
import pytest

from hpwsn_client import (
    Client,
    Closed,
    ConnectionFailed,
    EndpointReference,
    Receiver,
    SoapFault,
    SoapVersion,
    TimedOut,
)
from hpwsn_client.wsn.soap.envelope import encode_envelope, parse_envelope
from hpwsn_client.wsn.soap.names import SOAP11, WSA, hp
from hpwsn_client.wsn.soap.xml import Limits
from tests.patience import PATIENCE, holds

NOTIFY = b"""<wsnt:Notify xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2" xmlns:wsa="http://www.w3.org/2005/08/addressing">
<wsnt:NotificationMessage><wsnt:SubscriptionReference><wsa:Address>http://broker/s/1</wsa:Address></wsnt:SubscriptionReference>
<wsnt:Topic xmlns:f="urn:far" Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete">f:A/B</wsnt:Topic>
<wsnt:ProducerReference><wsa:Address>http://producer/</wsa:Address></wsnt:ProducerReference>
<wsnt:Message><p:m xmlns:p="urn:p">1</p:m></wsnt:Message></wsnt:NotificationMessage></wsnt:Notify>"""


async def post(receiver, data, content_type="text/xml"):
    headers = {"Content-Type": content_type}
    async with (
        aiohttp.ClientSession() as session,
        session.post(receiver.url, data=data, headers=headers) as response,
    ):
        return response.status, await response.read()


def fault_in(answer):
    return parse_envelope(answer).body


@pytest.mark.parametrize("soap", SoapVersion)
async def test_a_notification_comes_with_all_that_the_broker_said(soap):
    headers = [f'<a:MessageID xmlns:a="{WSA}">urn:uuid:1</a:MessageID>'.encode()]
    async with Receiver() as receiver:
        status, answer = await post(receiver, encode_envelope(soap, NOTIFY, headers), soap.content_type)
        notification = await receiver.get(PATIENCE)
    assert (status, answer) == (202, b"")
    assert notification.topic == "{urn:far}A:B"
    assert notification.element.tag == "{urn:p}m"
    assert notification.subscription == EndpointReference("http://broker/s/1")
    assert notification.producer == EndpointReference("http://producer/")
    assert notification.message_id == "urn:uuid:1"


async def test_many_notifications_are_iterated_in_order():
    async with Receiver() as receiver, Client(receiver.url) as client:
        await client.notify_many(("A:B", str(n)) for n in range(250))
        seen = [(await anext(receiver)).text for _ in range(250)]
    assert seen == [str(n) for n in range(250)]


async def test_the_publishers_id_goes_before_that_of_the_delivery():
    async with Receiver() as receiver, Client(receiver.url) as client:
        await client.notify("A", "x", message_id="mine")
        assert (await receiver.get(PATIENCE)).message_id == "mine"


async def test_a_raw_delivery_is_a_notification_without_a_topic():
    async with Receiver() as receiver:
        status, _ = await post(receiver, encode_envelope(SoapVersion.SOAP11, b'<p:m xmlns:p="urn:p">1</p:m>'))
        notification = await receiver.get(PATIENCE)
    assert status == 202
    assert (notification.topic, notification.element.tag) == (None, "{urn:p}m")


async def test_a_latin_1_delivery_is_understood():
    envelope = encode_envelope(SoapVersion.SOAP11, "<m>ä</m>".encode()).decode().encode("latin-1")
    async with Receiver() as receiver:
        status, _ = await post(receiver, envelope, "text/xml; charset=iso-8859-1")
        assert (await receiver.get(PATIENCE)).text == "<m>ä</m>"
    assert status == 202


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_answer_waits_for_the_callback(is_async):
    seen = []

    async def handle(notification):
        await asyncio.sleep(0)
        seen.append(notification.text)

    callback = handle if is_async else (lambda notification: seen.append(notification.text))
    async with Receiver(callback=callback) as receiver, Client(receiver.url) as client:
        await client.notify("A", "x")
        assert seen == ["x"]


async def test_a_callback_that_fails_is_logged_and_leaves_the_delivery_with_the_broker(caplog):
    def fail(notification):
        raise KeyError("not today")

    async with Receiver(callback=fail) as receiver, Client(receiver.url) as client:
        with caplog.at_level(logging.ERROR), pytest.raises(SoapFault, match="callback failed"):
            await client.notify("A:B", "x")
        status, _ = await post(receiver, encode_envelope(SoapVersion.SOAP12, NOTIFY))
    assert status == 500
    assert "A:B" in caplog.text
    assert "not today" in caplog.text


async def test_a_full_receiver_holds_the_broker_back_until_it_is_read():
    async with Receiver(max_waiting=2) as receiver, Client(receiver.url) as client:
        await client.notify_many([("A", "1"), ("A", "2")])
        held = asyncio.create_task(client.notify("A", "3"))
        await holds(receiver._mailbox._put_lock.locked)
        assert not held.done()
        assert [(await receiver.get(PATIENCE)).text for _ in range(3)] == ["1", "2", "3"]
        await held


async def test_a_full_receiver_that_nobody_reads_says_try_again_later(monkeypatch):
    monkeypatch.setattr("hpwsn_client.receiver._MAX_WAIT_FOR_ROOM", 0.01)
    async with Receiver(max_waiting=1) as receiver, aiohttp.ClientSession() as session:
        envelope = encode_envelope(SoapVersion.SOAP11, NOTIFY)
        statuses = []
        for _ in range(2):
            async with session.post(receiver.url, data=envelope) as response:
                statuses.append((response.status, response.headers.get("Retry-After")))
    assert statuses == [(202, None), (503, "1")]


async def test_closing_refuses_what_waits_for_room_and_keeps_what_was_acknowledged():
    receiver = await Receiver(max_waiting=1).open()
    async with Client(receiver.url) as client:
        await client.notify("A", "1")
        held = asyncio.create_task(client.notify("A", "2"))
        await holds(receiver._mailbox._put_lock.locked)
        await receiver.close()
        with pytest.raises(SoapFault, match="closing"):
            await held
    assert [notification.text async for notification in receiver] == ["1"]
    with pytest.raises(Closed):
        await receiver.get()
    with pytest.raises(Closed):
        await receiver.open()


async def test_an_idle_connection_does_not_hold_up_closing():
    async with aiohttp.ClientSession() as session:
        async with Receiver() as receiver:
            async with session.post(
                receiver.url, data=encode_envelope(SoapVersion.SOAP11, NOTIFY)
            ) as response:
                assert response.status == 202
            started = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - started < 2


def deep(levels):
    return encode_envelope(SoapVersion.SOAP11, b"<a>" * levels + b"</a>" * levels)


UNKNOWN_HEADER = f'<h:x xmlns:h="urn:h" xmlns:s="{SOAP11}" s:mustUnderstand="1"/>'.encode()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"no XML", 400),
        (b"", 400),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", 400),
        (deep(10_000), 400),
        (b"x" * 40_000, 413),
        (b"<root/>", 500),
        (encode_envelope(SoapVersion.SOAP11, b""), 500),
        (encode_envelope(SoapVersion.SOAP12, b""), 400),
        (encode_envelope(SoapVersion.SOAP11, b'<Notify xmlns="http://docs.oasis-open.org/wsn/b-2"/>'), 500),
        (encode_envelope(SoapVersion.SOAP11, NOTIFY, [UNKNOWN_HEADER]), 500),
    ],
)
async def test_bad_input_is_a_fault_and_the_receiver_goes_on(data, status):
    limits = Limits(body=30_000) if status == 413 else Limits()
    async with Receiver(limits=limits) as receiver, Client(receiver.url) as client:
        answered, answer = await post(receiver, data)
        await client.notify("A", "still here")
        assert (await receiver.get(PATIENCE)).text == "still here"
    assert answered == status
    assert fault_in(answer).tag.endswith("}Fault")


async def test_a_fault_answers_in_the_version_of_the_request():
    async with Receiver() as receiver:
        for soap in SoapVersion:
            _, answer = await post(receiver, encode_envelope(soap, b""), soap.content_type)
            assert fault_in(answer).tag == f"{{{soap.namespace}}}Fault"


async def test_a_reference_parameter_that_must_be_understood_is_one_of_ours():
    marks = f'xmlns:s="{SOAP11}" xmlns:a="{WSA}" s:mustUnderstand="1" a:IsReferenceParameter="true"'
    header = f'<h:x xmlns:h="urn:h" {marks}/>'
    async with Receiver() as receiver:
        status, _ = await post(receiver, encode_envelope(SoapVersion.SOAP11, NOTIFY, [header.encode()]))
    assert status == 202


async def test_other_paths_and_methods_are_not_served():
    async with Receiver(path="/here") as receiver, aiohttp.ClientSession() as session:
        assert receiver.url.endswith("/here")
        async with session.get(receiver.url) as response:
            assert response.status == 405
        async with session.post(receiver.url + "/there", data=b"x") as response:
            assert response.status == 404


async def test_waiting_in_vain_is_timed_out():
    async with Receiver() as receiver:
        with pytest.raises(TimedOut, match="no notification came"):
            await receiver.get(0.01)


async def test_a_taken_port_is_a_failure_that_names_it():
    async with Receiver() as receiver:
        port = int(receiver.url.rsplit(":", 1)[1].rstrip("/"))
        with pytest.raises(ConnectionFailed, match=f"{port}.*choose another"):
            await Receiver(port=port).open()


async def test_a_public_url_stands_before_the_local_one():
    async with Receiver("0.0.0.0", public_url="http://outside.example/n") as receiver:
        assert receiver.epr == EndpointReference("http://outside.example/n")


@pytest.mark.parametrize(
    "options", [{"host": "0.0.0.0"}, {"host": "::"}, {"path": "x"}, {"max_waiting": 0}, {"public_url": "x"}]
)
def test_options_that_cannot_work_are_refused(options):
    with pytest.raises(ValueError, match=r"public_url|path|max_waiting|URL"):
        Receiver(**options)


async def test_a_text_payload_arrives_as_the_element_that_carries_it():
    async with Receiver() as receiver, Client(receiver.url) as client:
        await client.notify("A", "1 < 2")
        notification = await receiver.get(PATIENCE)
    assert (notification.element.tag, notification.text) == (hp("text"), "1 < 2")
