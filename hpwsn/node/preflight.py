"""Checks of valid settings that would still prevent a start on this machine.

`hpwsn serve` and `hpwsn check-config` use the same checks: certificates, the data directory, files with
passwords and secrets, missing libraries, and addresses that this machine does not have. Each check runs the
code with which the node itself would fail. Conditions that may change at any time are not checked: a port or
a data directory in use, an unreachable server.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from hpwsn.broker.push.consumer_connection import consumer_context
from hpwsn.door.listener.tls import server_context
from hpwsn.door.onvif.username_tokens import Credentials
from hpwsn.errors import HpwsnError, SettingError
from hpwsn.journal.store.data_directory import why_unusable
from hpwsn.listening import listen_problem
from hpwsn.node.backbones import prepare_backbone
from hpwsn.node.dtn_parts import load_key
from hpwsn.node.sensor_gateways import check_mqtt, check_sensor_directory
from hpwsn.routing.membership.credentials import peer_authorities, shared_secret
from hpwsn.routing.topology.topology import MalformedTopology, check_name
from hpwsn.sensors.registry.sensors_file import SensorsFileRefused, load_sensors
from hpwsn.sensors.virtual.templates_file import TemplatesFileRefused, load_templates
from hpwsn.settings import Config
from hpwsn.streams.deployment.cluster_settings import is_local
from hpwsn.streams.deployment.worker_archive import check_archive
from hpwsn.topics.directory.directory import TopicDirectoryError
from hpwsn.topics.opening import access_from, edit_access_from, open_directory


def unusable_settings(config: Config) -> list[SettingError]:
    """The settings with which a node would refuse to start."""
    found = []
    for check in _CHECKS:
        try:
            check(config)
        except SettingError as error:
            found.append(error)
    return found


def check_topics_server(config: Config) -> None:
    """Refuse a topic directory that does not answer, although a node would start and wait for it."""
    _topics(config, remote=True)


def _host(config: Config) -> None:
    _check_host("server.host", config.server.host, "choose another address with --host")


def _links(config: Config) -> None:
    routing = config.routing
    if not config.cluster.admin:
        return
    if routing.host:
        _check_host("routing.host", routing.host, "name an address of this machine")
    try:
        routing.announced(0, "")
    except ValueError:
        raise SettingError("routing.public", routing.public, "must be host:port") from None


def _check_host(key: str, host: str, remedy: str) -> None:
    if reason := listen_problem(host):
        raise SettingError(key, host, f"is not an address to listen on ({reason}); {remedy}")


def _names(config: Config) -> None:
    if not config.cluster.admin:
        return
    for key, name in (("node.name", config.node.name), ("node.cluster", config.node.cluster)):
        try:
            check_name(name or "default")
        except MalformedTopology as error:
            raise SettingError(key, name, f"cannot be used: {error}") from None


def _data_directory(config: Config) -> None:
    if reason := why_unusable(Path(config.data.dir)):
        raise SettingError("data.dir", config.data.dir, reason)


def _topics(config: Config, remote: bool = False) -> None:
    topics, data = config.topics, Path(config.data.dir)
    if not topics.url and why_unusable(data):
        return
    try:
        directory = open_directory(topics.url, access_from(topics), data)
        if remote or not directory.remote:
            directory.load()
        if directory.remote and topics.edit_bind_dn:
            open_directory(topics.url, edit_access_from(topics))
    except TopicDirectoryError as error:
        raise SettingError("topics.url", topics.url, f"cannot be used: {error}") from None


def _backbone(config: Config) -> None:
    if config.backbone.url and not _is_pipe(config.backbone.password_file):
        prepare_backbone(config.backbone)


def _cluster(config: Config) -> None:
    if config.cluster.admin:
        shared_secret(config.cluster)
        peer_authorities(config.cluster.ca_file)


def _users(config: Config) -> None:
    if not _is_pipe(config.onvif.users_file):
        Credentials.load(config.onvif.users_file, config.onvif.token_window)


def _agent(config: Config) -> None:
    streams = config.streams
    if not streams.agent:
        return
    if any(find_spec(name) is None for name in ("pyspark", "pyarrow")):
        raise SettingError("streams.agent", "true", "requires Spark; pip install 'hpwsn[spark]', or unset it")
    if streams.agent_folder and not Path(streams.agent_folder).is_absolute():
        raise SettingError("streams.agent_folder", streams.agent_folder, "must be an absolute path")
    if not streams.archive:
        return
    if is_local(streams.master):
        remedy = "is for the workers of a cluster; set its streams.master, or leave it out"
        raise SettingError("streams.archive", streams.archive, remedy)
    try:
        check_archive(Path(streams.archive))
    except HpwsnError as error:
        raise SettingError("streams.archive", streams.archive, f"cannot be used: {error}") from None


def _sensors(config: Config) -> None:
    file = config.sensors.file
    if file and not _is_pipe(file):
        try:
            load_sensors(Path(file))
        except SensorsFileRefused as error:
            raise SettingError("sensors.file", file, str(error)) from None
    templates = config.sensors.templates
    if templates and not _is_pipe(templates):
        try:
            load_templates(Path(templates))
        except TemplatesFileRefused as error:
            raise SettingError("sensors.templates", templates, str(error)) from None
    check_mqtt(config.sensors)
    check_sensor_directory(config)


def _carriers(config: Config) -> None:
    if config.dtn.key_file:
        load_key(config.dtn)


def _tracing(config: Config) -> None:
    if not config.tracing.enabled:
        return
    if not config.tracing.otlp_url:
        raise SettingError("tracing.otlp_url", "", "must be the URL of a collector while tracing is enabled")
    try:
        found = find_spec("opentelemetry.sdk") and find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:
        found = None
    if found is None:
        remedy = "requires OpenTelemetry; pip install 'hpwsn[tracing]', or unset it"
        raise SettingError("tracing.enabled", "true", remedy)


def _is_pipe(file: str) -> bool:
    """Whether a file is a pipe, such as `<(command)` of a shell, which only the node may read."""
    try:
        return bool(file) and Path(file).is_fifo()
    except OSError:
        return False


_CHECKS: tuple[Callable[[Config], object], ...] = (
    _host,
    lambda config: server_context(config.server),
    _names,
    _data_directory,
    _topics,
    lambda config: consumer_context(config.delivery.ca_file),
    _users,
    _backbone,
    _cluster,
    _links,
    _agent,
    _sensors,
    _carriers,
    _tracing,
)
