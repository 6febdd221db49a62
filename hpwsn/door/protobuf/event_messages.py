"""Events in Protocol Buffers: one message type, `hpwsn.v1.Events`, with a Struct for each event.

wsdl/events.proto has the type for users; here it is built from its description, so that no compiler is
needed. A Struct has the types of JSON, so the door converts it to JSON lines and back. Its numbers are
doubles: integers are exact up to 2^53, and a whole number is published as an integer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2
from google.protobuf.message import DecodeError

from hpwsn_client.wsn.soap.soap_faults import SoapFault, TooLarge
from hpwsn_client.wsn.soap.xml import Limits

EXACT = 2.0**53
"""The largest double up to which every integer is exact."""


def _events_class() -> Any:
    field = descriptor_pb2.FieldDescriptorProto(
        name="events",
        number=1,
        label=descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
        type_name=".google.protobuf.Struct",
    )
    file = descriptor_pb2.FileDescriptorProto(
        name="hpwsn/v1/events.proto",
        package="hpwsn.v1",
        syntax="proto3",
        dependency=[struct_pb2.DESCRIPTOR.name],
        message_type=[descriptor_pb2.DescriptorProto(name="Events", field=[field])],
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("hpwsn.v1.Events"))


_Events = _events_class()


def encode_messages(events: Sequence[bytes]) -> bytes:
    """An Events message from the JSON object of each event."""
    message = _Events()
    for event in events:
        _fill(message.events.add(), json.loads(event))
    encoded: bytes = message.SerializeToString()
    return encoded


def _fill(struct: Any, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        _set(struct.fields[name], value)


def _set(target: Any, value: Any) -> None:
    if value is None:
        target.null_value = 0
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, dict):
        target.struct_value.SetInParent()
        _fill(target.struct_value, value)
    elif isinstance(value, list):
        target.list_value.SetInParent()
        for each in value:
            _set(target.list_value.values.add(), each)
    else:
        target.number_value = _double(value)


def _double(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        raise SoapFault(
            "an event has an integer beyond the range of a double; read it as JSON", status=406
        ) from None


def lines_of(body: bytes, limits: Limits, growth: int) -> bytes:
    """The events of an Events message as lines of JSON; a fault if that is not possible within the limits."""
    message = _Events()
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise SoapFault(f"the body is not a message hpwsn.v1.Events: {error}", status=400) from error
    if len(message.events) > limits.messages:
        raise TooLarge(f"there are more than the {limits.messages} events accepted at once")
    if not len(message.events):
        raise SoapFault("there is no event; send at least one Struct", status=400)
    return b"".join(_lines(message, growth * limits.body))


def _lines(message: Any, room: int) -> Iterator[bytes]:
    for struct in message.events:
        line = json.dumps(_fields(struct), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        room -= len(line)
        if room < 0:
            raise TooLarge("the events are too large as JSON; send several requests")
        yield line


def _fields(struct: Any) -> dict[str, Any]:
    return {name: _value(value) for name, value in struct.fields.items()}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        return _number(value.number_value)
    if kind == "struct_value":
        return _fields(value.struct_value)
    if kind == "list_value":
        return [_value(each) for each in value.list_value.values]
    # A Value without a kind is invalid; protobuf's own JSON form rejects it too.
    if kind is None:
        raise SoapFault("a field has no value; set null_value for null", status=400)
    return None if kind == "null_value" else getattr(value, kind)


def _number(number: float) -> int | float:
    if number - number != 0:
        raise SoapFault(f"a field is {number}, which JSON does not have; leave it out", status=400)
    return int(number) if number.is_integer() and abs(number) <= EXACT else number
