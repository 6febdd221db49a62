"""Where each module goes. Several old modules with one new name are merged, the first of them leading."""

_TABLE = """
hpwsn: listening=listener+file_limit background=broker.background+door.documents
hpwsn.settings: setting=settings.setting+settings.place quantities=quantities
hpwsn.configuration: sources=config environment=config_environment reference=config_reference
hpwsn.commands: main=cli+next_steps bench=cli_bench cluster=cli_cluster options=cli_config dead_letters=cli_deadletters
  resources=cli_resources streams=cli_streams streams_generate=cli_streams_generate streams_run=cli_streams_run
  topics=topics.command+topics.drawing operator_api=operator_api
hpwsn.node: preflight=preflight content_engines=broker.engines backbones=backbone.choose
hpwsn.door.listener: http_lane=door.lane request_head=door.heads gate=door.gate+door.refusal
  http_exchange=door.exchange+door.response tls=door.tls
hpwsn.door.notify: scan=C.wsn.notify_scan parts=C.wsn.notify_parts shapes=C.wsn.shapes scope=C.wsn.scope
  notify_lane=door.notify_lane
hpwsn.door.soap: contract=door.contract dispatch=door.dispatch+door.unavailable owner_proxy=door.elsewhere soap_door=door.http
  operation=door.operation registration_operations=door.registrations proxied_answers=door.relays
  resource_operations=door.resources+door.topic_namespaces broker_operations=door.soap
  spyne_compatibility=door.spyne_compatibility property_documents=broker.properties
hpwsn.door.rest: events=door.events event_stream=door.event_stream event_socket=door.event_socket
  operator_api=door.operations dead_letters=door.dead_letters streams=door.streams openapi=door.openapi
  openapi_operators=door.openapi_operators openapi_parts=door.openapi_parts openapi_streams=door.openapi_streams
hpwsn.door.onvif: event_service=door.onvif device=door.onvif_device event_operations=door.onvif_operations
  username_tokens=door.onvif_security pull_subscriptions=broker.pull_subscriptions
hpwsn.door.original: wsn_process=door.legacy push_endpoints=broker.push_endpoints
hpwsn.broker: broker=broker.broker housekeeping=broker.housekeeping reaper=broker.reaper
hpwsn.broker.admission: admission=broker.publisher batching=broker.intake backbone_arrivals=broker.arrivals
hpwsn.broker.subscriptions: subscription=broker.subscription subscriptions=broker.subscriptions cursor=broker.cursor
  audience=broker.audience subscribe_policy=broker.granting stored_subscribe=broker.stored_subscribe
  producer_conditions=broker.conditions pull_points=broker.pull_points resource_addresses=broker.ids+broker.own_address
hpwsn.broker.lifetimes: leases=broker.lifetimes+broker.termination message_expiry=broker.expiry retry=broker.retry
hpwsn.broker.registrations: registrations=broker.registrations registered_publisher=broker.registration+broker.upstream
  demand=broker.demand demand_interest=broker.interest
hpwsn.broker.delivery: delivery=broker.delivery backlog=broker.backlog+broker.recent+broker.journal_work resend=broker.once
  sending=broker.sending+broker.settling queue_limits=broker.overflow senders=broker.consumers
  dead_letters=broker.dead_letters removed_topics=broker.removed_topics log_readers=broker.readers processor=broker.processor
hpwsn.broker.push: pool=broker.push consumer_connection=broker.push_connection+broker.push_tls request=broker.push_request
hpwsn.routing.wire: router_messages=routing.messages publication=routing.publication binary=routing.reading
  patterns=routing.patterns payloads=routing.payloads effects=routing.effects fragments=routing.fragments
  original_fragments=routing.original frames=routing.frames+routing.records+routing.replay pacing=routing.pacing
hpwsn.routing.topology: topology=routing.topology+routing.topology_changes cluster_view=routing.view
hpwsn.routing.interest: interest_sets=routing.interest known_interest=routing.told interest_exchange=routing.exchange
  routes=routing.ways
hpwsn.routing.publications: outbox=routing.outbox relays=routing.relays+routing.acks best_effort=routing.passing
  duplicates=routing.duplicates+routing.repeats
hpwsn.routing.links: links=routing.links udp=routing.udp udp_sending=routing.udp_outgoing+routing.options tcp=routing.tcp
  tcp_sending=routing.tcp_sending authentication_failures=routing.strangers
hpwsn.routing.membership: membership=routing.membership admin_client=routing.admin_client
  last_topology=routing.last_topology credentials=routing.secret+routing.tls signing=routing.signing
hpwsn.topics.tree: tree=topics.tree topic_node=topics.node+topics.nearness subscriber_groups=topics.interests
  overlap=topics.overlap topic_set=topics.topic_set declarations=topics.declaration+topics.change
hpwsn.topics.directory: directory=topics.directory topic_file=topics.file topic_file_watch=topics.file_watch
  topic_toml=topics.document live_topics=topics.live tree_cache=topics.cache
hpwsn.topics.ldap: ldap_directory=topics.ldap.directory ldap_connection=topics.ldap.connection ldap_watch=topics.ldap.watch
hpwsn.topics.ldap.entries: dn=topics.ldap.dn topic_entry=topics.ldap.entries mirror=topics.ldap.mirror ldif=topics.ldap.ldif
hpwsn.matching.language: values=matching.values predicates=matching.predicates
  normal_form=matching.normal_form+matching.expressions simplify=matching.simplify plain_form=matching.plain_form
  grammar=matching.language constraints=matching.constraints reference_engine=matching.naive+matching.port
hpwsn.matching.content: attributes=matching.attributes+matching.flat_events content_filters=matching.content
  content_group=matching.content_group content_index=matching.content_index xpath_shape=matching.xpath_shape
hpwsn.matching.engine: cells=matching.cells compiled_kernel=matching.compiled
  conjunction_index=matching.rare_attributes+matching.entries interval_groups=matching.groups equality_index=matching.hashes
  default_engine=matching.indexed intervals=matching.intervals kernels=matching.kernels keyword_index=matching.keywords
  equality_pairs=matching.pairs interval_index=matching.rows segments=matching.segments word_cells=matching.shelves
hpwsn.matching.papers: categories=matching.engines.categories clusters=matching.engines.clusters
  conjunctions=matching.engines.conjunctions correlations=matching.engines.correlations counting=matching.engines.counting
  drt_cluster=matching.engines.drt_cluster kd_tree=matching.engines.kd_tree parallel=matching.engines.parallel
  partition=matching.engines.partition predicate_lists=matching.engines.predicate_lists
  rt_cluster=matching.engines.rt_cluster sequential=matching.engines.sequential trees=matching.engines.trees
  worker_processes=matching_processes
hpwsn.journal.store: append=journal.append changes=journal.changes data_directory=journal.writable+journal.lock
  reader=journal.reader records=journal.records recovery=journal.recovery reserve=journal.reserve routed=journal.routed
  log_rows=journal.rows tables=journal.schema spool=journal.spool writer=journal.writer+journal.steps
hpwsn.journal.retention: retention=journal.retention pruning=journal.pruning leftovers=journal.leftovers
hpwsn.backbone: interface=backbone.port backbone_settings=backbone.options embedded=backbone.embedded
hpwsn.backbone.wire: frames=backbone.frames+backbone.seen destinations=backbone.names
hpwsn.backbone.activemq: activemq_backbone=backbone.activemq.backbone thread_bridge=backbone.activemq.bridge
  application_messages=backbone.activemq.exchange stomp_link=backbone.activemq.link internal_publisher=backbone.internal
hpwsn.streams: definition_files=streams.loading
hpwsn.streams.definition: builder=streams.builder event_conditions=streams.conditions definition=streams.definition
  definition_toml=streams.document positions=streams.positions problems=streams.problems schema=streams.schema
  windows=streams.windows operator=streams.operators.port
hpwsn.streams.plan: plan=streams.plan+streams.reference plan_drawing=streams.drawing
hpwsn.streams.registry: known_services=streams.registry service=streams.service service_file=streams.store
hpwsn.streams.spark: user_functions=streams.spark.calls stateful_operators=streams.spark.groups
  job=streams.spark.job+streams.spark.session dataframes=streams.spark.operators file_replay=streams.spark.replay
  running=streams.spark.running+streams.progress broker_link=streams.broker_link
hpwsn_admin: api=A.api+A.topics state_file=A.store
hpwsn_client: environment=C.surroundings+C.urls pipeline=C.pipeline+C.replies pipelined_publisher=C.pipelined
  receiver=C.receiver+C.mailbox transport=C.transport+C.calls+C.listening
hpwsn_client.commands: main=C.cli completion=C.completion+C.command_parser
hpwsn_client.wsn.soap: names=C.wsn.names version=C.wsn.version xml=C.wsn.xml sequence=C.wsn.sequence times=C.wsn.times
  addressing=C.wsn.addressing soap_faults=C.wsn.soap_faults wsn_faults=C.wsn.wsn_faults faults=C.wsn.faults
  envelope=C.wsn.soap wsse=C.wsn.wsse payload_xml=C.wsn.payload_xml
hpwsn_client.wsn.topics: topic=C.wsn.topic+C.wsn.topic_sets topic_expressions=C.wsn.topics
hpwsn_client.wsn.operations: notifications=C.wsn.notifications subscriptions=C.wsn.subscriptions
  pull_points=C.wsn.pull_points registrations=C.wsn.registrations properties=C.wsn.properties lifetime=C.wsn.lifetime
  policy=C.wsn.policy queries=C.wsn.queries filters=C.wsn.filters messages=C.wsn.messages xpath_cost=C.wsn.xpath_cost
hpwsn_client.wsn.formats: original=C.wsn.original onvif=C.wsn.onvif onvif_elements=C.wsn.onvif_elements
  json_events=C.wsn.json_events json_text=C.wsn.json_text
"""

SYMBOLS = {
    ("hpwsn_client.wsn.shapes", "END"): "hpwsn.notification",
    ("hpwsn_client.wsn.shapes", "split_payloads"): "hpwsn.notification",
    ("hpwsn_client.wsn.notify_scan", "Encoded"): "hpwsn.notification",
    ("hpwsn_client.wsn.notify_scan", "EncodedRun"): "hpwsn.notification",
    ("hpwsn.topics.directory", "open_directory"): "hpwsn.topics.opening",
    ("hpwsn.topics.directory", "access_from"): "hpwsn.topics.opening",
    ("hpwsn.door.unavailable", "BUSY"): "hpwsn.door.listener.http_exchange",
    ("hpwsn.door.unavailable", "RETRY_AFTER"): "hpwsn.door.listener.http_exchange",
    ("hpwsn.broker.properties", "PropertyDocument"): "hpwsn.broker.subscriptions.producer_conditions",
    ("hpwsn.broker.publisher", "RecentIds"): "hpwsn.broker.admission.message_ids",
    ("hpwsn.broker.publisher", "MOST_IDS"): "hpwsn.broker.admission.message_ids",
    ("hpwsn.broker.publisher", "Span"): "hpwsn.broker.admission.message_ids",
}
"""Names that leave their module; the definitions are moved by hand."""


def merges() -> dict[str, list[str]]:
    """The old modules of each new one, leading first."""
    found: dict[str, list[str]] = {}
    folder = ""
    for word in _TABLE.split():
        if word.endswith(":"):
            folder = word[:-1]
            continue
        new, _, old = word.partition("=")
        found[f"{folder}.{new}"] = [_full(each) for each in old.split("+")]
    return found


def _full(short: str) -> str:
    top, _, rest = short.partition(".")
    if top == "C":
        return f"hpwsn_client.{rest}"
    if top == "A":
        return f"hpwsn_admin.{rest}"
    return f"hpwsn.{short}"
