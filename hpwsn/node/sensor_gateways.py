"""Where the sensors of a node are, as its settings say: the MQTT broker, and the directory of LDAP.

Both are checked at start, and connected. What cannot be used raises a SettingError that names the setting. A
server that does not answer is no such case: the node starts without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpwsn.errors import SettingError
from hpwsn.journal.journal import Journal
from hpwsn.sensors.gateways.mqtt_address import MqttAddress
from hpwsn.sensors.gateways.mqtt_topics import TopicTemplate, parse_command_template, parse_templates
from hpwsn.sensors.registry.directory_sensors import DirectorySensors
from hpwsn.sensors.registry.sensor_entries import SENSORS
from hpwsn.sensors.registry.sensor_registry import SensorRegistry
from hpwsn.settings import Config, SensorsSettings
from hpwsn.topics.directory.directory import TopicDirectoryError
from hpwsn.topics.directory.entry_directory import EntryDirectory
from hpwsn.topics.opening import open_entries

if TYPE_CHECKING:
    from hpwsn.sensors.gateways.mqtt_gateway import MqttGateway, Take


def check_mqtt(settings: SensorsSettings) -> None:
    """Raise SettingError if the settings of the MQTT gateway cannot be used."""
    if settings.mqtt_url:
        from hpwsn.sensors.gateways.mqtt_link import load_paho

        load_paho()
        _address(settings)
        _templates(settings)
        _commands(settings)


def open_mqtt(settings: SensorsSettings, data: Path, node: str, take: Take) -> MqttGateway:
    """Build the gateway, whose session is kept in the data directory."""
    # Other nodes have no use for these modules.
    from hpwsn.sensors.gateways.mqtt_gateway import MqttGateway
    from hpwsn.sensors.gateways.mqtt_session import MqttSession

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


def check_sensor_directory(config: Config) -> None:
    """Raise SettingError if sensors.ldap_base cannot be used; the server is not asked."""
    if config.sensors.ldap_base:
        _entries(config)


def open_sensor_directory(
    config: Config, registry: SensorRegistry, journal: Journal
) -> DirectorySensors | None:
    """The directory connected with the registry; None if sensors are only in the journal."""
    if not config.sensors.ldap_base:
        return None
    writes = bool(config.topics.edit_bind_dn)
    return DirectorySensors(_entries(config), registry, journal, writes=writes)


def _entries(config: Config) -> EntryDirectory:
    base = config.sensors.ldap_base
    try:
        return open_entries(config.topics, base, SENSORS)
    except (TopicDirectoryError, ValueError) as error:
        raise SettingError("sensors.ldap_base", base, f"cannot be used: {error}") from error
