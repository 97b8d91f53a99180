"""Every metric of a broker, one row each: the Prometheus page and docs/metrics.md follow from them.

Names follow Kafka's MBeans, in the spelling of the usual JMX exporter rules:
`kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce` is
`kafka_network_requestmetrics_totaltimems{request="Produce"}`; a counter gets `_total` at its end.
"""

from typing import Final

from odradek.broker.observability.request_metrics import LOOP_LAG_BOUNDS_S, PHASE_BOUNDS_MS, REQUEST_BOUNDS_BYTES
from odradek.runtime.metric import Instrument, Metric, Unit

_COUNTER, _HISTOGRAM, _GAUGE = Instrument.COUNTER, Instrument.HISTOGRAM, Instrument.GAUGE
_REQUEST: Final = ("request",)
_PARTITION: Final = ("topic", "partition")
_THROTTLED: Final = "For how long a client was told to be silent, on an average of the times that it was."
_LISTENER: Final = ("listener",)


def _of_requests(name: str, instrument: Instrument, unit: Unit, doc: str, labels: tuple[str, ...] = _REQUEST) -> Metric:
    return Metric(f"kafka_network_requestmetrics_{name}", instrument, unit, doc, labels)


def _phase(name: str, doc: str) -> Metric:
    row = _of_requests(f"{name}timems", _HISTOGRAM, Unit.MILLISECONDS, doc)
    return row._replace(bounds=PHASE_BOUNDS_MS)


def _of_groups(name: str, instrument: Instrument, unit: Unit, doc: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric(f"kafka_server_group_coordinator_metrics_{name}", instrument, unit, doc, labels)


def _of_quota(name: str, unit: Unit, doc: str) -> Metric:
    doc = f"{doc} By who shares a limit, of those that used something last; an empty label: whoever it is."
    return Metric(f"kafka_server_{name}", _GAUGE, unit, doc, ("user", "client_id"))


REQUESTS: Final = _of_requests(
    "requests", _COUNTER, Unit.REQUESTS, "Requests answered, and those without an answer.", ("request", "version")
)
ERRORS: Final = _of_requests(
    "errors", _COUNTER, Unit.ERRORS, "Errors answered; one request may hold several.", ("request", "error")
)
BYTES_OUT: Final = _of_requests("response_bytes", _COUNTER, Unit.BYTES, "Bytes of answers.")
REQUEST_SIZE: Final = _of_requests(
    "requestbytes", _HISTOGRAM, Unit.BYTES, "Sizes of requests; the sum is what came in."
)._replace(bounds=REQUEST_BOUNDS_BYTES)
TOTAL_TIME: Final = _phase("total", "From the last byte of a request until its answer is sent: all phases.")
REQUEST_QUEUE_TIME: Final = _phase(
    "requestqueue", "Read ahead: until a request begins; those before it on its connection come first."
)
LOCAL_TIME: Final = _phase("local", "Handler: decoding, log, disk, encoding.")
REMOTE_TIME: Final = _phase(
    "remote", "Waiting: a Produce for replicas, a Fetch for data, a change for the metadata store or the controller."
)
THROTTLE_TIME: Final = _phase("throttle", "Quota: for how long it silences the client.")
RESPONSE_QUEUE_TIME: Final = _phase(
    "responsequeue", "Reply queue: until an answer is given to the transport, behind those before it."
)
RESPONSE_SEND_TIME: Final = _phase(
    "responsesend", "Transport: for how long it holds more than it may, for the client does not read."
)
MESSAGE_CONVERSIONS_TIME: Final = _phase(
    "messageconversions",
    "Of the handler's time: appends whose batches the topic has looked through or compressed anew.",
)
MALFORMED: Final = _of_requests(
    "malformed", _COUNTER, Unit.CONNECTIONS, "Connections closed for what they sent.", ()
)._replace(is_ours=True)

CONNECTION_COUNT: Final = Metric(
    "kafka_server_socketservermetrics_connection_count", _GAUGE, Unit.CONNECTIONS, "Open connections."
)
CONNECTIONS_REFUSED: Final = Metric(
    "kafka_server_socketservermetrics_connections_refused",
    _COUNTER,
    Unit.CONNECTIONS,
    "Connections over a limit on their number or their rate, or over the limit of open files.",
    is_ours=True,
)
_AUTHENTICATION: Final = ("listener", "mechanism")
AUTHENTICATIONS: Final = Metric(
    "kafka_server_socketservermetrics_successful_authentication",
    _COUNTER,
    Unit.CONNECTIONS,
    "Connections that have said by SASL who they are.",
    _AUTHENTICATION,
)
FAILED_AUTHENTICATIONS: Final = Metric(
    "kafka_server_socketservermetrics_failed_authentication",
    _COUNTER,
    Unit.CONNECTIONS,
    "Connections that could not; a mechanism that is not served is `other`.",
    _AUTHENTICATION,
)
REAUTHENTICATIONS: Final = Metric(
    "kafka_server_socketservermetrics_successful_reauthentication",
    _COUNTER,
    Unit.TIMES,
    "Sessions that were renewed (KIP-368).",
    _AUTHENTICATION,
)
FAILED_REAUTHENTICATIONS: Final = Metric(
    "kafka_server_socketservermetrics_failed_reauthentication",
    _COUNTER,
    Unit.TIMES,
    "Sessions that could not be, which ends the connection.",
    _AUTHENTICATION,
)
EXPIRED_SESSIONS: Final = Metric(
    "kafka_server_socketservermetrics_expired_connections_killed_count",
    _COUNTER,
    Unit.CONNECTIONS,
    "Connections closed that went on after their session.",
    ("listener",),
)
CONNECTIONS_UNAUTHENTICATED: Final = Metric(
    "odradek_connections_unauthenticated",
    _GAUGE,
    Unit.CONNECTIONS,
    "Open connections of which it is not known yet whose they are.",
    is_ours=True,
)
TLS_HANDSHAKES_FAILED: Final = Metric(
    "odradek_tls_handshakes_failed",
    _COUNTER,
    Unit.CONNECTIONS,
    "Connections that were closed before TLS stood, for what came or did not come.",
    _LISTENER,
    is_ours=True,
)
CERTIFICATE_DAYS_LEFT: Final = Metric(
    "odradek_tls_certificate_days_left",
    _GAUGE,
    Unit.DAYS,
    "Until the first certificate in the chain of a listener ends; negative afterwards.",
    _LISTENER,
    is_ours=True,
)
CERTIFICATE_REFUSED: Final = Metric(
    "odradek_tls_certificate_refused",
    _GAUGE,
    Unit.YES_OR_NO,
    "Whether the files or options of a listener hold certificates that may not take the place of the old ones.",
    _LISTENER,
    is_ours=True,
)

PRODUCE_RATE: Final = _of_quota("produce_byte_rate", Unit.BYTES, "Bytes of Produce requests in a second.")
PRODUCE_THROTTLE: Final = _of_quota("produce_throttle_time", Unit.MILLISECONDS, _THROTTLED)
FETCH_RATE: Final = _of_quota("fetch_byte_rate", Unit.BYTES, "Bytes of answers to Fetches in a second.")
FETCH_THROTTLE: Final = _of_quota("fetch_throttle_time", Unit.MILLISECONDS, _THROTTLED)
REQUEST_TIME: Final = _of_quota("request_request_time", Unit.PERCENT, "Of the time of the loop's thread.")
REQUEST_THROTTLE: Final = _of_quota("request_throttle_time", Unit.MILLISECONDS, _THROTTLED)
MUTATION_TOKENS: Final = _of_quota(
    "controllermutation_tokens", Unit.PARTITIONS, "That may be created or deleted at once; negative: owed."
)
MUTATION_THROTTLE: Final = _of_quota("controllermutation_throttle_time", Unit.MILLISECONDS, _THROTTLED)
ACCEPT_THROTTLE: Final = Metric(
    "kafka_server_socketservermetrics_connection_accept_throttle_time_ms",
    _COUNTER,
    Unit.MILLISECONDS,
    "For how long connections had to wait in all, since too many came in a second to the listener or the broker.",
    ("listener",),
    is_ours=True,
)
IP_ACCEPT_THROTTLE: Final = ACCEPT_THROTTLE._replace(
    name="kafka_server_socketservermetrics_ip_connection_accept_throttle_time_ms",
    doc="The same of those that were closed then, since too many came in a second from their address.",
)
LOOP_LAG: Final = Metric(
    "odradek_loop_lag_seconds",
    _HISTOGRAM,
    Unit.SECONDS,
    "How late the event loop rings a timer, sampled every 10 ms; above 0.05, requests wait for something that should "
    "not be in the loop.",
    is_ours=True,
    bounds=LOOP_LAG_BOUNDS_S,
)

PARTITION_COUNT: Final = Metric(
    "kafka_server_replicamanager_partitioncount", _GAUGE, Unit.PARTITIONS, "Partitions open on this broker."
)
LEADER_COUNT: Final = Metric("kafka_server_replicamanager_leadercount", _GAUGE, Unit.PARTITIONS, "Partitions led.")
UNDER_REPLICATED: Final = Metric(
    "kafka_server_replicamanager_underreplicatedpartitions",
    _GAUGE,
    Unit.PARTITIONS,
    "Partitions led that lack a replica in sync.",
)
UNDER_MIN_ISR: Final = Metric(
    "kafka_server_replicamanager_underminisrpartitioncount",
    _GAUGE,
    Unit.PARTITIONS,
    "Partitions led with too few in sync for acks=all.",
)
OFFLINE_REPLICAS: Final = Metric(
    "kafka_server_replicamanager_offlinereplicacount",
    _GAUGE,
    Unit.PARTITIONS,
    "Partitions of this broker in data directories that cannot be used.",
)
OFFLINE_DIRECTORIES: Final = Metric(
    "kafka_log_logmanager_offlinelogdirectorycount", _GAUGE, Unit.DIRECTORIES, "Data directories that cannot be used."
)
LATE_TRANSACTIONS: Final = Metric(
    "kafka_server_replicamanager_partitionswithlatetransactionscount",
    _GAUGE,
    Unit.PARTITIONS,
    "Partitions led with a transaction that is open for longer than `transaction.max.timeout.ms` and five minutes.",
)
STABLE_OFFSET_LAG: Final = Metric(
    "kafka_cluster_partition_laststableoffsetlag",
    _GAUGE,
    Unit.OFFSETS,
    "Of a partition led: high watermark less last stable offset, by which readers of read_committed are held up.",
    _PARTITION,
)
STABLE_OFFSET_AGE: Final = Metric(
    "kafka_cluster_partition_laststableoffsetagems",
    _GAUGE,
    Unit.MILLISECONDS,
    "Of a partition led: for how long its oldest open transaction has been open; 0 without one.",
    _PARTITION,
    is_ours=True,
)
LOG_SIZE: Final = Metric("kafka_log_log_size", _GAUGE, Unit.BYTES, "Bytes of the log.", _PARTITION)
LOG_START_OFFSET: Final = Metric(
    "kafka_log_log_logstartoffset", _GAUGE, Unit.OFFSET, "The first offset in it.", _PARTITION
)
LOG_END_OFFSET: Final = Metric("kafka_log_log_logendoffset", _GAUGE, Unit.OFFSET, "The next to be given.", _PARTITION)

GROUPS: Final = _of_groups(
    "group_count", _GAUGE, Unit.GROUPS, "Groups coordinated here, by kind and state.", ("protocol", "state")
)
COORDINATOR_PARTITIONS: Final = _of_groups(
    "num_partitions",
    _GAUGE,
    Unit.PARTITIONS,
    "Partitions of `__consumer_offsets` led here, by whether they are loaded.",
    ("state",),
)
COORDINATOR_LOAD_TIME: Final = _of_groups(
    "partition_load_time_max", _GAUGE, Unit.MILLISECONDS, "The longest time that one of them took to load."
)
COMMITTED_OFFSETS: Final = _of_groups("offset_count", _GAUGE, Unit.OFFSETS, "Offsets that are kept here.")
OFFSET_COMMITS: Final = _of_groups("offset_commit", _COUNTER, Unit.OFFSETS, "Offsets committed.")
OFFSET_EXPIRATIONS: Final = _of_groups(
    "offset_expiration", _COUNTER, Unit.OFFSETS, "Offsets removed since their time was up."
)
OFFSET_DELETIONS: Final = _of_groups("offset_deletion", _COUNTER, Unit.OFFSETS, "Offsets that clients had deleted.")
REBALANCES: Final = _of_groups(
    "group_rebalance", _COUNTER, Unit.TIMES, "Rebalances begun, by what began them.", ("reason",)
)._replace(is_ours=True)
GROUP_LAG: Final = Metric(
    "odradek_group_lag",
    _GAUGE,
    Unit.RECORDS,
    "High watermark less committed offset, of groups coordinated here and partitions with a replica here; with "
    "`metrics.group.lag.max.series`.",
    ("group", "topic", "partition"),
    is_ours=True,
)
GROUP_LAG_LEFT_OUT: Final = Metric(
    "odradek_group_lag_series_left_out",
    _GAUGE,
    Unit.OFFSETS,
    "Committed offsets that were not looked at, for there were enough series before them; those of partitions without "
    "a replica here count, too.",
    is_ours=True,
)

ACTIVE_CONTROLLERS: Final = Metric(
    "kafka_controller_kafkacontroller_activecontrollercount",
    _GAUGE,
    Unit.YES_OR_NO,
    "Whether this broker decides. Over all brokers the sum is 1.",
)
OFFLINE_PARTITIONS: Final = Metric(
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    _GAUGE,
    Unit.PARTITIONS,
    "Partitions without a leader, by the controller's count; 0 at the others, so that a sum is their number.",
)
ACTIVE_BROKERS: Final = Metric(
    "kafka_controller_kafkacontroller_activebrokercount", _GAUGE, Unit.BROKERS, "Brokers that are there."
)
FENCED_BROKERS: Final = Metric(
    "kafka_controller_kafkacontroller_fencedbrokercount",
    _GAUGE,
    Unit.BROKERS,
    "Brokers that are registered, and not there.",
)
STORE_SILENT: Final = Metric(
    "odradek_metadata_store_silent",
    _GAUGE,
    Unit.YES_OR_NO,
    "Whether the metadata store does not answer this broker.",
    is_ours=True,
)
CLOCK_OFFSET: Final = Metric(
    "odradek_clock_offset_seconds",
    _GAUGE,
    Unit.SECONDS,
    "By how much this machine's clock is ahead of the controller's; 0 at the controller.",
    is_ours=True,
)

ACL_COUNT: Final = Metric(
    "kafka_server_authorizer_metrics_acls_total_count", _GAUGE, Unit.ACLS, "ACLs that are stored."
)
DENIALS: Final = Metric(
    "kafka_server_authorizer_metrics_authorization_denied",
    _COUNTER,
    Unit.TIMES,
    "Refusals that stand in the log of the audit.",
)
AUTHORIZER_WITHOUT_EFFECT: Final = Metric(
    "odradek_authorizer_without_effect",
    _GAUGE,
    Unit.YES_OR_NO,
    "Whether an authorizer is set and refuses nothing, for a registered broker cannot keep ACLs yet.",
    is_ours=True,
)
ACLS_UNCERTAIN: Final = Metric(
    "odradek_acls_uncertain",
    _GAUGE,
    Unit.YES_OR_NO,
    "Whether this broker does not know that it has the newest ACLs, and turns clients away.",
    is_ours=True,
)

METRICS: Final = tuple(value for value in dict(globals()).values() if isinstance(value, Metric))
"""Every row."""
