"""Requests for webhooks in JSON, as the Subscribe that the broker understands.

Fields that are null count as absent. The standard's faults for topics, filters and lifetimes become JSON
errors, so that both doors grant and refuse the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lxml import etree

from hpwsn.broker.subscriptions.stored_subscribe import parse_stored_subscribe
from hpwsn.broker.subscriptions.webhook import LONGEST_SECRET, Webhook
from hpwsn.door.rest.events.event_parameters import content_filter
from hpwsn.door.rest.json_answers import bad
from hpwsn_client.wsn.operations.filters import Filter
from hpwsn_client.wsn.operations.messages import Subscribe, SubscriptionPolicy, encode_message
from hpwsn_client.wsn.operations.policy import parse_policy
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import DIALECT_SIMPLE, hp, wsnt
from hpwsn_client.wsn.soap.times import Duration, Termination, parse_time
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

FIELDS = ("topic", "callback", "filter", "dialect", "expires", "delivery", "secret")
_outside_xml = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]").search
DELIVERY_FIELDS = ("maxQueue", "overflow", "batch", "expires", "discipline", "alpha", "beta")

LONGEST_SECONDS = 10**9
"""The most seconds of a lifetime that is given as a number."""


def parse_webhook(asked: Mapping[str, Any]) -> Subscribe:
    """The Subscribe of a webhook; a fault if a field is not valid. Callers have rejected unknown fields."""
    callback = _text(asked, "callback")
    if not callback:
        raise bad("callback is missing; give the http or https address to which events are posted")
    topic, expression = _text(asked, "topic"), _text(asked, "filter")
    content = content_filter((expression or "").strip(), _text(asked, "dialect"))
    wanted = Subscribe(
        EndpointReference(callback),
        Filter(
            () if topic is None else (TopicExpression.of(Topic.parse(topic), DIALECT_SIMPLE),),
            () if content is None else (content,),
        ),
        parse_expires(asked.get("expires")),
        _policy(asked.get("delivery")),
        (Webhook(_secret(_text(asked, "secret"))).extension(),),
    )
    # As after a restart, so that a repeated request is equal then too.
    return parse_stored_subscribe(encode_message(wanted))


def parse_expires(value: object) -> Termination:
    """The requested end of a subscription; None for no end."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return parse_time(value)
        if isinstance(value, int | float) and 1 <= value <= LONGEST_SECONDS and value is not True:
            return Duration(seconds=value)
    except ValueError as error:
        raise bad(f"expires is not valid: {error}") from error
    raise bad(
        f"expires is {_shown(value)}; give a duration such as PT1H, a time such as 2030-01-31T12:00:00Z,"
        f" a number of seconds from 1 to {LONGEST_SECONDS}, or null for no end"
    )


def _policy(asked: object) -> SubscriptionPolicy:
    """The policy whose element hp:Delivery has these attributes."""
    if asked is None:
        return SubscriptionPolicy()
    if not isinstance(asked, dict):
        raise bad(f"delivery is {_shown(asked)}; give an object with {', '.join(DELIVERY_FIELDS)}")
    policy = etree.Element(wsnt("SubscriptionPolicy"))
    delivery = etree.SubElement(policy, hp("Delivery"))
    for name, value in asked.items():
        if name not in DELIVERY_FIELDS:
            raise bad(f"delivery has {shown(name)}; known fields are {', '.join(DELIVERY_FIELDS)}")
        if value is not None:
            _set(delivery, name, value)
    try:
        found = parse_policy(policy)
    except faults.UnsupportedPolicyRequestFault as fault:
        raise bad(fault.reason.replace("the policy hp:Delivery", "delivery")) from fault
    return found if delivery.attrib else SubscriptionPolicy()


def _set(delivery: etree._Element, name: str, value: object) -> None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one kind of number
    try:
        if isinstance(value, str | int) and not isinstance(value, bool):
            delivery.set(name, str(value))
            return
    except ValueError:
        pass  # XML does not allow a character of the text
    raise bad(f"delivery has {name} {_shown(value)}; give a number or a text")


def _secret(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not 1 <= len(text) <= LONGEST_SECRET:
        raise bad(f"secret has {len(text)} characters; give 1 to {LONGEST_SECRET}, or leave it out")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise bad("secret has half of a surrogate pair, which is not a character; leave it out") from None


def _text(asked: Mapping[str, Any], name: str) -> str | None:
    value = asked.get(name)
    if isinstance(value, str) and name != "secret" and (found := _outside_xml(value)):
        raise bad(f"{name} has the character U+{ord(found[0]):04X}, which XML does not allow; leave it out")
    if value is None or isinstance(value, str):
        return value
    # A secret is not shown, not even to its sender: errors are logged and pasted.
    raise bad(f"{name} is {'not a text' if name == 'secret' else _shown(value)}; give a text")


def _shown(value: object) -> str:
    return shown(json.dumps(value, ensure_ascii=False))
