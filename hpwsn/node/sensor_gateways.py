"""The MQTT gateway of a node, as its settings describe it: checked at start, and built.

What cannot be used raises a SettingError that names the setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpwsn.errors import SettingError
from hpwsn.sensors.gateways.mqtt_gateway import MqttGateway, Take
from hpwsn.sensors.gateways.mqtt_link import MqttAddress, load_paho
from hpwsn.sensors.gateways.mqtt_session import MqttSession
from hpwsn.sensors.gateways.mqtt_topics import TopicTemplate, parse_command_template, parse_templates
from hpwsn.settings import SensorsSettings


def check_mqtt(settings: SensorsSettings) -> None:
    """Raise SettingError if the settings of the MQTT gateway cannot be used."""
    if settings.mqtt_url:
        load_paho()
        _address(settings)
        _templates(settings)
        _commands(settings)


def open_mqtt(settings: SensorsSettings, data: Path, node: str, take: Take) -> MqttGateway:
    """Build the gateway, whose session is kept in the data directory."""
    check_mqtt(settings)
    try:
        session = MqttSession(data, node, settings.mqtt_url)
    except ValueError as error:
        raise SettingError("sensors.mqtt_url", settings.mqtt_url, f"cannot be used: {error}") from error
    return MqttGateway(
        _address(settings),
        session,
        _templates(settings),
        _commands(settings),
        take,
        readings_limit=settings.readings_limit,
    )


def _address(settings: SensorsSettings) -> MqttAddress:
    address = MqttAddress(
        settings.mqtt_url, settings.mqtt_user, settings.mqtt_password_file, settings.mqtt_ca_file
    )
    try:
        _ = address.place
    except ValueError as error:
        raise SettingError("sensors.mqtt_url", settings.mqtt_url, str(error)) from error
    for name in ("mqtt_password_file", "mqtt_ca_file"):
        file = getattr(settings, name)
        if file and not Path(file).is_file():
            raise SettingError(f"sensors.{name}", file, "is not a file that exists")
    return address


def _templates(settings: SensorsSettings) -> Sequence[TopicTemplate]:
    try:
        return parse_templates(settings.mqtt_topics)
    except ValueError as error:
        raise SettingError("sensors.mqtt_topics", settings.mqtt_topics, f"cannot be used: {error}") from error


def _commands(settings: SensorsSettings) -> TopicTemplate | None:
    try:
        return parse_command_template(settings.mqtt_commands)
    except ValueError as error:
        told = f"cannot be used: {error}"
        raise SettingError("sensors.mqtt_commands", settings.mqtt_commands, told) from error
