"""The section `sensors`: physical sensors, gateways, virtual sensors and the kept readings."""

from __future__ import annotations

from dataclasses import dataclass

from hpwsn.settings.quantities import Boolean, Duration, Integer, Size, Text, Url
from hpwsn.settings.setting import setting

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class SensorsSettings:
    """Physical and virtual sensors."""

    file: str = setting(
        "", Text("a TOML file, or empty"), "Physical sensors that the node registers when it starts."
    )
    templates: str = setting(
        "",
        Text("a TOML file, or empty"),
        "Virtual sensors that the node defines when it starts, and those that are new or changed on SIGHUP.",
    )
    auto_register: bool = setting(
        False, Boolean(), "Register an unknown sensor with its first reading, which then names its `kind`."
    )
    limit: int = setting(100_000, Integer(1, 10_000_000), "Most physical sensors.")
    virtual_limit: int = setting(10_000, Integer(1, 1_000_000), "Most virtual sensors.")
    max_age: float = setting(DAY, Duration(1), "Readings with an earlier time are rejected.")
    max_ahead: float = setting(300.0, Duration(0), "Readings whose time is further ahead are rejected.")
    readings_limit: int = setting(10_000, Integer(1, 1_000_000), "Most readings in one request or message.")
    rejected_kept: int = setting(
        10_000, Integer(0, 1_000_000), "Rejected readings that are kept for inspection; the oldest go first."
    )
    linger: float = setting(
        5.0, Duration(0), "Time after the last user until a virtual sensor, or a sensor on demand, stops."
    )
    window_readings: int = setting(
        100_000,
        Integer(1, 10_000_000),
        "Most readings that one virtual sensor holds for its open windows; more of them are only history.",
    )
    mqtt_url: str = setting(
        "",
        Url("an mqtt:// or mqtts:// URL, or empty", schemes=("mqtt", "mqtts")),
        "MQTT broker whose messages are readings.",
    )
    mqtt_topics: str = setting(
        "sensors/{sensor}/readings",
        Text("MQTT topics with {sensor} for the id and + or # as in MQTT, separated by commas"),
        "MQTT topics of the readings.",
    )
    mqtt_commands: str = setting(
        "sensors/{sensor}/wanted",
        Text("an MQTT topic with {sensor}, or empty for no commands"),
        "MQTT topic on which a sensor on demand is told to start (`true`) and to stop (`false`).",
    )
    mqtt_user: str = setting("", Text("a name, or empty for anonymous"), "User at the MQTT broker.")
    mqtt_password_file: str = setting("", Text("a file"), "Password of `mqtt_user`.")
    mqtt_ca_file: str = setting(
        "", Text("a PEM file, or empty for the system's certificates"), "Certificates that mqtts:// trusts."
    )
    ldap_base: str = setting(
        "",
        Text("a DN, or empty"),
        "Entry of the LDAP server of `topics.url` below which physical sensors are, too.",
    )
    history: bool = setting(True, Boolean(), "Keep all readings as Parquet files in the data directory.")
    history_age: float = setting(365 * DAY, Duration(1), "Age after which kept readings are removed.")
    history_bytes: int = setting(
        10 * 1024**3, Size(1 << 20), "Size of the kept readings, beyond which the oldest day goes."
    )
