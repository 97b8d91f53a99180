"""The keys of the metadata store and what stands under them. Pure.

    /cluster                     the cluster's id; while a backup is being restored, which one that is
    /cluster/incarnations/<id>   the process of one broker, and those before it     by these three a history
    /cluster/commits/<id>/<it>   which commit of that process is its newest         of the metadata is known
    /cluster/origin              that an operator began this history                from another one (lineage.py)
    /nodes/<id>                  a broker that was registered once: its directories, addresses and rack
    /brokers/<id>                it is there: under its lease, and never changed. Its revision is the broker's epoch
    /stopping/<id>               it is about to stop, and may join no in-sync set; under its lease
    /controller                  the elected broker; under its lease
    /topics/<name>               a topic. The topic exists exactly while this key does
    /partitions/<topic>/<index>  replicas, in-sync replicas, leader and epochs of one partition
    /changing/<topic>            somebody writes partition keys of this topic in several commits (topics.py)
    /configs/topics/<name>       a topic's own configuration
    /configs/brokers/<id>        a broker's dynamic configuration; `default` for all of them
    /configs/groups/<id>         what a group of consumers sets for itself, whether it is there or not
    /producer-ids                the first producer id that no broker has taken
    /features                    what all brokers can do, and rely on (features.py)
    /quotas/<entity>             limits of a user, a client id, both, or an address (quotas.py)
    /scram/secret                by which users without credentials are hidden
    /scram/users/<it>/<name>    what is kept of a user's password, for a mechanism      (scram_credentials.py)
    /acls/<hash>                 an ACL; the hash is that of all that it says, so that it is there once (acls.py)

Values are JSON objects with the version of their format (values.py).
A partition names its topic's id, so keys left behind by a deletion are never taken for those of a new topic of the
same name. Topic names hold no `/` (`check_topic_name`).
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from odradek.broker.cluster.values import Fields, encode
from odradek.broker.cluster.values import MalformedMetadata as MalformedMetadata
from odradek.protocol.codec.schema import ZERO_UUID, uuid_text
from odradek.protocol.errors import ErrorCode, KafkaError

RESTORING_VERSION = 1_000_000
"""Of the value under `/cluster` during a restore: newer than any, so that who knows no restore refuses it, too."""

CLUSTER_KEY = "/cluster"
"""Read as a prefix it brings all that says which cluster this is, and which history of it."""
COMMITS_PREFIX = "/cluster/commits/"
INCARNATIONS_PREFIX = "/cluster/incarnations/"
ORIGIN_KEY = "/cluster/origin"
CONTROLLER_KEY = "/controller"
PRODUCER_IDS_KEY = "/producer-ids"
FEATURES_KEY = "/features"
NODES_PREFIX = "/nodes/"
BROKERS_PREFIX = "/brokers/"
STOPPING_PREFIX = "/stopping/"
TOPICS_PREFIX = "/topics/"
PARTITIONS_PREFIX = "/partitions/"
CHANGING_PREFIX = "/changing/"
TOPIC_CONFIGS_PREFIX = "/configs/topics/"
BROKER_CONFIGS_PREFIX = "/configs/brokers/"
GROUP_CONFIGS_PREFIX = "/configs/groups/"
QUOTAS_PREFIX = "/quotas/"
SCRAM_SECRET_KEY = "/scram/secret"  # noqa: S105  (where it stands)
SCRAM_USERS_PREFIX = "/scram/users/"
ACLS_PREFIX = "/acls/"
DEFAULT_BROKER = "default"
"""In place of a broker id: the configuration of all brokers."""

TOPIC_NAME_LENGTH_MAX = 249
_LEGAL_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")
NO_LEADER = -1


class KeyKind(Enum):
    """What a key stands for."""

    CLUSTER = CLUSTER_KEY
    CONTROLLER = CONTROLLER_KEY
    PRODUCER_IDS = PRODUCER_IDS_KEY
    FEATURES = FEATURES_KEY
    NODE = NODES_PREFIX
    BROKER = BROKERS_PREFIX
    STOPPING = STOPPING_PREFIX
    TOPIC = TOPICS_PREFIX
    PARTITION = PARTITIONS_PREFIX
    CHANGING = CHANGING_PREFIX
    TOPIC_CONFIG = TOPIC_CONFIGS_PREFIX
    BROKER_CONFIG = BROKER_CONFIGS_PREFIX
    GROUP_CONFIG = GROUP_CONFIGS_PREFIX
    QUOTA = QUOTAS_PREFIX
    ACL = ACLS_PREFIX
    COMMIT = COMMITS_PREFIX
    INCARNATION = INCARNATIONS_PREFIX
    ORIGIN = ORIGIN_KEY
    SCRAM_SECRET = SCRAM_SECRET_KEY
    SCRAM_USER = SCRAM_USERS_PREFIX
    FOREIGN = ""
    """Nothing of ours: left alone."""


_SINGLE_KINDS = {
    kind.value: kind
    for kind in (
        KeyKind.CLUSTER,
        KeyKind.CONTROLLER,
        KeyKind.PRODUCER_IDS,
        KeyKind.FEATURES,
        KeyKind.ORIGIN,
        KeyKind.SCRAM_SECRET,
    )
}
_PREFIX_KINDS = (
    KeyKind.PARTITION,
    KeyKind.TOPIC,
    KeyKind.NODE,
    KeyKind.BROKER,
    KeyKind.STOPPING,
    KeyKind.TOPIC_CONFIG,
    KeyKind.BROKER_CONFIG,
    KeyKind.GROUP_CONFIG,
    KeyKind.QUOTA,
    KeyKind.ACL,
    KeyKind.CHANGING,
    KeyKind.COMMIT,
    KeyKind.INCARNATION,
    KeyKind.SCRAM_USER,
)
SECRET_KINDS = frozenset({KeyKind.SCRAM_SECRET, KeyKind.SCRAM_USER})
"""Keys whose values are secrets: a backup has them only if it is asked for them."""


# -- keys -----------------------------------------------------------------------------------------------------------


def node_key(broker_id: int) -> str:
    return f"{NODES_PREFIX}{broker_id}"


def broker_key(broker_id: int) -> str:
    return f"{BROKERS_PREFIX}{broker_id}"


def stopping_key(broker_id: int) -> str:
    return f"{STOPPING_PREFIX}{broker_id}"


def commit_key(broker_id: int, incarnation: str) -> str:
    return f"{COMMITS_PREFIX}{broker_id}/{incarnation}"


def incarnation_key(broker_id: int) -> str:
    return f"{INCARNATIONS_PREFIX}{broker_id}"


def topic_key(topic: str) -> str:
    return TOPICS_PREFIX + topic


def partition_key(topic: str, index: int) -> str:
    return f"{PARTITIONS_PREFIX}{topic}/{index}"


def partitions_prefix(topic: str) -> str:
    return f"{PARTITIONS_PREFIX}{topic}/"


def changing_key(topic: str) -> str:
    return CHANGING_PREFIX + topic


def topic_config_key(topic: str) -> str:
    return TOPIC_CONFIGS_PREFIX + topic


def broker_config_key(broker_id: int | None) -> str:
    """None: the configuration of all brokers."""
    return f"{BROKER_CONFIGS_PREFIX}{DEFAULT_BROKER if broker_id is None else broker_id}"


def group_config_key(group_id: str) -> str:
    """A group's id may hold any characters, `/` too."""
    return GROUP_CONFIGS_PREFIX + group_id


def scram_user_key(mechanism: str, user: str) -> str:
    """A user's name may hold any characters, `/` too."""
    return f"{SCRAM_USERS_PREFIX}{mechanism}/{user}"


def parse_key(key: str) -> tuple[KeyKind, str]:
    """What the key stands for, and the part behind the prefix ("" for a key without one)."""
    if (single := _SINGLE_KINDS.get(key)) is not None:
        return single, ""
    for kind in _PREFIX_KINDS:
        if key.startswith(kind.value):
            return kind, key[len(kind.value) :]
    return KeyKind.FOREIGN, key


def parse_partition(name: str) -> tuple[str, int]:
    """Topic and index from what stands behind PARTITIONS_PREFIX. Raises MalformedMetadata."""
    topic, slash, index = name.partition("/")
    if not slash or not topic or not _INDEX.fullmatch(index):
        raise MalformedMetadata(f"{PARTITIONS_PREFIX}{name} names no partition")
    return topic, int(index)


def parse_broker_id(name: str) -> int:
    """The id from what stands behind BROKERS_PREFIX. Raises MalformedMetadata."""
    if not _INDEX.fullmatch(name):
        raise MalformedMetadata(f"a key names broker {name!r}, which is no broker id: is it one of another program?")
    return int(name)


# -- topic names ----------------------------------------------------------------------------------------------------


def check_topic_name(name: str) -> None:
    """Raises KafkaError INVALID_TOPIC_EXCEPTION with Kafka's words (Topic.java)."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
    elif not _LEGAL_TOPIC_NAME.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def colliding_name(name: str) -> str:
    """Two topics whose names differ in `.` and `_` only have the same colliding name, and Kafka refuses the second:
    metric names can not tell them apart."""
    return name.replace(".", "_")


def check_collision(name: str, others: Iterable[str]) -> None:
    """Raises KafkaError INVALID_TOPIC_EXCEPTION when one of the topics `others` collides with a new topic `name`."""
    if "." not in name and "_" not in name:
        return
    unified = colliding_name(name)
    collisions = sorted(other for other in others if other != name and colliding_name(other) == unified)
    if collisions:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {', '.join(collisions)}"
        )


# -- values ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A broker that is there. `epoch` is the revision of its key: a newer registration has a higher one."""

    broker_id: int
    endpoints: Mapping[str, tuple[str, int]]
    """Listener name -> advertised host and port."""
    rack: str | None = None
    directory_id: bytes = ZERO_UUID
    epoch: int = field(default=0, compare=False)

    def encode(self) -> bytes:
        return encode(
            {
                "endpoints": _encoded(self.endpoints),
                "rack": self.rack,
                "directory_id": uuid_text(self.directory_id),
            }
        )


@dataclass(frozen=True, slots=True)
class NodeState:
    """What outlives a broker's run: it was registered once with these data directories, at these addresses."""

    directory_ids: tuple[bytes, ...]
    rack: str | None = None
    endpoints: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """As in `BrokerState`; none where a version wrote it that did not."""
    features: Mapping[str, int] = field(default_factory=dict[str, int])
    """What its release can do (features.py); nothing, where a release wrote it that knew of none."""
    revision: int = field(default=0, compare=False)

    def encode(self) -> bytes:
        fields: dict[str, Any] = {
            "directory_ids": [uuid_text(each) for each in self.directory_ids],
            "rack": self.rack,
            "endpoints": _encoded(self.endpoints),
        }
        if self.features:
            fields["features"] = dict(self.features)
        return encode(fields)


@dataclass(frozen=True, slots=True)
class TopicState:
    """What stands under `/topics/<name>`. `revision` is that of its key."""

    topic_id: bytes
    partition_count: int
    revision: int = field(default=0, compare=False)

    def encode(self) -> bytes:
        return encode({"topic_id": uuid_text(self.topic_id), "partitions": self.partition_count})


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as the cluster agreed on it. `revision` is that of its key, for the next conditional write."""

    topic_id: bytes
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    """NO_LEADER when there is none."""
    leader_epoch: int = 0
    partition_epoch: int = 0
    """Grows with every change of this value (Kafka's partition epoch, KIP-497)."""
    elr: tuple[int, ...] = ()
    """Eligible leader replicas (KIP-966; partition_changes.py)."""
    last_known_leader: int = NO_LEADER
    """Where nobody is in sync or eligible: who was last, and is taken first by an unclean election. If that one has
    lost everything, another replica."""
    adding: tuple[int, ...] = ()
    """Of `replicas`, those that a reassignment adds (KIP-455)."""
    removing: tuple[int, ...] = ()
    """Of `replicas`, those that it will take away."""
    offline: tuple[int, ...] = ()
    """Of `replicas`, those in data directories that cannot be used (KIP-858); each broker says so of its own."""
    revision: int = field(default=0, compare=False)

    def encode(self) -> bytes:
        fields: dict[str, Any] = {
            "topic_id": uuid_text(self.topic_id),
            "replicas": self.replicas,
            "isr": self.isr,
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "partition_epoch": self.partition_epoch,
        }
        for name in ("elr", "adding", "removing", "offline"):
            if brokers := getattr(self, name):
                fields[name] = brokers
        if self.last_known_leader != NO_LEADER:
            fields["last_known_leader"] = self.last_known_leader
        return encode(fields)


def decode_broker(value: bytes, broker_id: int, epoch: int = 0) -> BrokerState:
    """Raises MalformedMetadata, as all of these do."""
    fields = Fields(value, f"broker {broker_id}")
    return BrokerState(
        broker_id,
        fields.endpoints(),
        rack=fields.text("rack") if fields.get("rack") is not None else None,
        directory_id=fields.uuid("directory_id"),
        epoch=epoch,
    )


def decode_node(value: bytes, broker_id: int, revision: int = 0) -> NodeState:
    fields = Fields(value, f"node {broker_id}")
    return NodeState(
        fields.uuids("directory_ids"),
        fields.text("rack") if fields.get("rack") is not None else None,
        fields.endpoints() if fields.get("endpoints") is not None else {},
        fields.levels("features"),
        revision,
    )


def encode_stopping(broker_epoch: int) -> bytes:
    return encode({"broker_epoch": broker_epoch})


def decode_topic(value: bytes, topic: str, revision: int = 0) -> TopicState:
    fields = Fields(value, f"topic {topic}")
    return TopicState(fields.uuid("topic_id"), fields.number("partitions"), revision)


def decode_partition(value: bytes, topic: str, index: int, revision: int = 0) -> PartitionState:
    fields = Fields(value, f"partition {topic}-{index}")
    return PartitionState(
        fields.uuid("topic_id"),
        fields.numbers("replicas"),
        fields.numbers("isr"),
        fields.number("leader"),
        fields.number("leader_epoch"),
        fields.number("partition_epoch"),
        elr=fields.numbers("elr", ()),
        last_known_leader=fields.number("last_known_leader", NO_LEADER),
        adding=fields.numbers("adding", ()),
        removing=fields.numbers("removing", ()),
        offline=fields.numbers("offline", ()),
        revision=revision,
    )


def encode_controller(broker_id: int) -> bytes:
    return encode({"broker_id": broker_id})


def decode_controller(value: bytes) -> int:
    return Fields(value, CONTROLLER_KEY).number("broker_id")


def encode_cluster(cluster_id: str) -> bytes:
    return encode({"cluster_id": cluster_id})


def encode_restoring(checksum: str) -> bytes:
    """What stands under `/cluster` while a backup with this checksum is being restored (backup.py)."""
    return json.dumps({"v": RESTORING_VERSION, "restoring": checksum}, separators=(",", ":")).encode()


def decode_restoring(value: bytes) -> str | None:
    """The checksum of the backup; None where no restore is under way."""
    try:
        match json.loads(value):
            case {"restoring": str(checksum)}:
                return checksum
            case _:
                return None
    except (ValueError, RecursionError):
        return None


def decode_cluster(value: bytes) -> str:
    if decode_restoring(value) is not None:
        raise MalformedMetadata(
            "a restore of this metadata was begun and has not ended: give the same `odradek cluster restore` again"
        )
    return Fields(value, CLUSTER_KEY).text("cluster_id")


def encode_producer_ids(next_producer_id: int) -> bytes:
    return encode({"next": next_producer_id})


def decode_producer_ids(value: bytes) -> int:
    return Fields(value, PRODUCER_IDS_KEY).number("next")


def encode_features(levels: Mapping[str, int], held: Mapping[str, int] | None = None) -> bytes:
    """`held`: the levels that an operator has set (features.py)."""
    fields = {"features": dict(levels)}
    return encode(fields | {"held": dict(held)} if held else fields)


def decode_features(value: bytes) -> tuple[dict[str, int], dict[str, int]]:
    """What is finalized, and what of it is held."""
    fields = Fields(value, FEATURES_KEY)
    return fields.levels("features"), fields.levels("held")


def encode_configs(configs: Mapping[str, str]) -> bytes:
    return encode({"configs": dict(configs)})


def decode_configs(value: bytes, key: str) -> dict[str, str]:
    fields = Fields(value, key)
    configs: dict[str, str] = {}
    for name, text in fields.mapping("configs").items():
        if not isinstance(text, str):
            raise fields.wrong("configs")
        configs[name] = text
    return configs


def encode_changing(topic_id: bytes) -> bytes:
    return encode({"topic_id": uuid_text(topic_id)})


def decode_changing(value: bytes, topic: str) -> bytes:
    return Fields(value, changing_key(topic)).uuid("topic_id")


def _encoded(endpoints: Mapping[str, tuple[str, int]]) -> dict[str, list[str | int]]:
    return {name: [host, port] for name, (host, port) in endpoints.items()}
