"""An answer of the matrix of rights, without what no two clusters have in common.

Left out are texts, addresses and the values of options; numbers that grow are told apart from none; topic ids are those
of the topics that have them; lists stand in an order of their own. What a refusal looks like is all there: each error,
at its place, whatever is null or empty, and what is not named.
"""

from collections.abc import Mapping
from typing import Any, Final

from odradek.protocol.codec.schema import ZERO_UUID, Struct
from odradek.protocol.errors import ErrorCode
from tests.compat.admin_leaves import as_dict, as_list
from tests.compat.questions import CLOSED
from tests.compat.rights_world import World

Shape = Any
"""Of dicts, lists and plain values."""

LEFT_OUT: Final = frozenset(
    (
        "throttle_time_ms", "error_message", "host", "port", "cluster_id", "controller_id", "rack", "leader_epoch",
        "log_dir", "total_bytes", "usable_bytes", "partition_size", "offset_lag", "configs", "client_host",
        "replica_nodes", "isr_nodes", "rebalances", "nodes", "observers", "current_voters", "leader_id",
        "node_endpoints",
        "last_timestamp", "transaction_start_time_ms", "group_epoch", "assignment_epoch", "member_epoch",
        "replica_directory_id", "is_cordoned", "assignor_name",
    )
)  # fmt: skip
"""What depends on the cluster, and nothing on rights."""
GROWING: Final = frozenset(
    (
        "base_offset", "log_append_time_ms", "log_start_offset", "offset", "timestamp", "high_watermark",
        "last_stable_offset", "producer_id", "producer_epoch", "end_offset", "low_watermark", "session_id",
        "last_sequence",
        "current_txn_start_offset", "coordinator_epoch", "committed_offset", "committed_leader_epoch", "node_id",
    )
)  # fmt: skip
"""Only whether there is one counts: -1 stands for none."""
SOME, NONE = "some", "none"
IN_TEXT: Final = frozenset(("error_code", "topic_config_error_code", "partition_error_code"))


def shape_of(world: World, answer: object) -> Shape:
    """Of an answer, or of CLOSED."""
    if answer == CLOSED:
        return CLOSED
    names = {topic_id: name for name, topic_id in world.ids.items()}
    return _shape(answer, "", names)


def _shape(value: Any, field: str, names: Mapping[bytes, str]) -> Shape:
    if isinstance(value, Struct):
        return {name: _shape(getattr(value, name), name, names) for name in type(value).fields if name not in LEFT_OUT}
    if (items := as_list(value)) is not None:
        return sorted((_shape(each, field, names) for each in items), key=repr)
    if field in IN_TEXT:
        return ErrorCode(value).name
    if field == "topic_id":
        return _id(value, names)
    if field in GROWING:
        return NONE if value < 0 else SOME
    if isinstance(value, bytes | bytearray | memoryview):
        return NONE if value == b"" else SOME
    return value


def _id(topic_id: bytes, names: Mapping[bytes, str]) -> str:
    if topic_id == ZERO_UUID:
        return NONE
    return f"the id of {names[topic_id]}" if topic_id in names else SOME


def errors_in(shape: Shape) -> frozenset[str]:
    """All that are in it, by their names."""
    found: set[str] = set()
    for name, value in (as_dict(shape) or {}).items():
        found |= {str(value)} if name in IN_TEXT else errors_in(value)
    for each in as_list(shape) or ():
        found |= errors_in(each)
    return frozenset(found)
