"""The choice of the backbone by the configuration."""

from __future__ import annotations

from collections.abc import Callable

from hpwsn.backbone.backbone_settings import backbone_address
from hpwsn.backbone.embedded import EmbeddedBackbone
from hpwsn.backbone.interface import Backbone
from hpwsn.backbone.wire.destinations import Address
from hpwsn.journal.journal import Journal
from hpwsn.settings import BackboneSettings, Config
from hpwsn_client.wsn.soap.xml import Limits
from hpwsn_client.wsn.topics.topic_expressions import Topic


def prepare_backbone(settings: BackboneSettings) -> Address:
    """The address and password of ActiveMQ; SettingError if a library or a file is missing."""
    from hpwsn.backbone.activemq.stomp_link import load_stomp

    load_stomp()
    return backbone_address(settings)


def choose_backbone(
    config: Config,
    node: str,
    journal: Journal,
    clock: Callable[[], float],
    limits: Limits,
    is_internal: Callable[[Topic], bool],
) -> Backbone:
    """ActiveMQ if `backbone.url` is set, else the embedded backbone; peers get no internal topic."""
    settings = config.backbone
    if not settings.url:
        return EmbeddedBackbone(journal.append)
    address = prepare_backbone(settings)
    from hpwsn.backbone.activemq.activemq_backbone import ActiveMQBackbone, Settings
    from hpwsn.backbone.activemq.peers import Peers

    peers = Peers(
        address,
        node,
        [Topic.parse(peer) for peer in settings.peers],
        journal=journal,
        clock=clock,
        limits=limits,
        persistent=settings.persistent,
        prefetch=settings.prefetch,
        heartbeat=settings.heartbeat,
        is_internal=is_internal,
    )
    return ActiveMQBackbone(
        address,
        node,
        journal=journal,
        clock=clock,
        settings=Settings(
            persistent=settings.persistent,
            batch=settings.batch,
            prefetch=settings.prefetch,
            heartbeat=settings.heartbeat,
            spool_limit=settings.spool_limit,
            spool_bytes=settings.spool_bytes,
            waiting_bytes=config.journal.waiting_limit,
        ),
        peers=peers if settings.peers else None,
    )
