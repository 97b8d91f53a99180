"""`ConsumerConfig`: what is fetched, from where reading begins, what the program gets, and its part in a group."""
# ruff: noqa: RUF009  (the calls make fields of the dataclass, as `dataclasses.field` does)

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, cast

from odradek.client.configuration.settings import (
    INT_MAX,
    Accepting,
    choice,
    converted,
    flag,
    is_default,
    optional_text,
    text,
    thing,
    whole,
)
from odradek.client.consumer.assignment.assignor import Assignor, rebalance_protocol
from odradek.client.consumer.assignment.built_in import BUILT_IN, DEFAULT_NAMES, assignors
from odradek.client.consumer.deserialization import Deserializer
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.errors.client_errors import ConfigError
from odradek.client.fetching.config import FetchConfig
from odradek.client.fetching.fetch_settings import FetchSettings
from odradek.client.topic_partition import TopicPartition

__all__ = ["ConsumerConfig", "RebalanceCallback"]

OffsetReset = Literal["earliest", "latest", "none"]
GroupProtocol = Literal["classic", "consumer"]
RebalanceCallback = Callable[[frozenset[TopicPartition]], Awaitable[None] | None]
"""A function or a coroutine function that is told of partitions."""

CALLBACK: Final = "a function or a coroutine function (partitions)"
_TOPICS: Final = "topics' names (str)"
_ASSIGNORS: Final = f"names of assignors ({', '.join(BUILT_IN)}), or odradek.Assignor objects"


def _topics(value: object) -> tuple[str, ...]:
    """Of one text: names with commas between them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, Iterable) or isinstance(names, bytes):
        raise ValueError(_TOPICS)
    found = [name.strip() if isinstance(name, str) else name for name in cast(Iterable[object], names)]
    if not all(isinstance(name, str) and name for name in found):
        raise ValueError(_TOPICS)
    return tuple(dict.fromkeys(cast("list[str]", found)))


def _assignors(value: object) -> tuple[str | Assignor, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, Iterable) or isinstance(names, bytes):
        raise ValueError(_ASSIGNORS)
    found: tuple[Any, ...] = tuple(
        name.strip() if isinstance(name, str) else name for name in cast("Iterable[object]", names)
    )
    if not found:
        raise ValueError(_ASSIGNORS)
    for each in found:
        if each not in BUILT_IN if isinstance(each, str) else not callable(getattr(each, "assign", None)):
            raise ValueError(_ASSIGNORS)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConsumerConfig(FetchConfig):
    """The settings of a consumer."""

    NAME: ClassVar[str] = "consumer"

    group_id: str | None = optional_text("The group; without one, partitions are assigned by hand.")
    topics: Accepting[str | Iterable[str], tuple[str, ...]] = converted(
        _topics, "The topics that are subscribed to at the start.", default=(), expected=_TOPICS, is_ours=True
    )
    group_protocol: GroupProtocol = choice(
        "classic", GroupProtocol, "`consumer`: the broker assigns (KIP-848, from Kafka 4.0 on)."
    )
    group_instance_id: str | None = optional_text(
        "Makes the member static: it keeps its partitions when it restarts within its session."
    )
    group_remote_assignor: str | None = optional_text(
        "With `group_protocol=consumer`: the assignor of the broker; unset: the broker's default."
    )
    partition_assignment_strategy: Accepting[str | Sequence[str | Assignor], tuple[str | Assignor, ...]] = converted(
        _assignors,
        "With `group_protocol=classic`: the assignors, best first.",
        default=DEFAULT_NAMES,
        expected=_ASSIGNORS,
    )
    session_timeout_ms: int = whole(
        45_000, "A member of which nothing is heard for so long is out of the group.", maximum=INT_MAX, unit="ms"
    )
    heartbeat_interval_ms: int = whole(3_000, "So often it is heard of.", minimum=1, maximum=INT_MAX, unit="ms")
    max_poll_interval_ms: int = whole(
        300_000,
        "A member that does not ask for records for so long leaves the group, and comes back when it asks.",
        minimum=1,
        maximum=INT_MAX,
        unit="ms",
    )
    enable_auto_commit: bool = flag(True, "Whether what is done is committed by itself.")
    auto_commit_interval_ms: int = whole(5_000, "So often.", minimum=1, maximum=INT_MAX, unit="ms")
    exclude_internal_topics: bool = flag(True, "Whether a pattern leaves out internal topics.")
    on_assigned: RebalanceCallback | None = thing(
        None, "Told of partitions before their first record.", expected=CALLBACK, check=callable, is_ours=True
    )
    on_revoked: RebalanceCallback | None = thing(
        None, "Told of partitions that are being given up.", expected=CALLBACK, check=callable, is_ours=True
    )
    on_lost: RebalanceCallback | None = thing(
        None,
        "Told of partitions that others may have already; unset: `on_revoked` is.",
        expected=CALLBACK,
        check=callable,
        is_ours=True,
    )
    auto_offset_reset: OffsetReset = choice(
        "latest",
        OffsetReset,
        "Where reading begins that has no offset yet, and where it goes on when its offset is out of range. Of a group "
        "that has offsets, partitions without one are read from their beginning, also with `latest`.",
    )
    prefetch_bytes: int = whole(
        67_108_864,
        "So much may be fetched ahead, over all partitions.",
        minimum=1,
        maximum=INT_MAX,
        unit="bytes",
        is_ours=True,
    )
    client_rack: str = text("", "Where this client stands, to read from a replica there; empty: from the leaders.")
    key_deserializer: Deserializer | None = thing(
        None,
        "Makes something of the bytes of keys.",
        expected="a callable (topic, bytes or None) -> object, no coroutine function",
    )
    value_deserializer: Deserializer | None = thing(
        None,
        "Makes something of the bytes of values.",
        expected="a callable (topic, bytes or None) -> object, no coroutine function",
    )
    skip_bad_records: bool = flag(
        False, "Whether a record that a deserializer refuses is left out, and not raised as an error.", is_ours=True
    )
    manual_done: bool = flag(
        False, "Whether only `done(record)` counts, and not that the program has asked for more.", is_ours=True
    )
    close_timeout_ms: int = whole(30_000, "How long closing may take.", unit="ms", is_ours=True)

    def _resolve(self) -> None:
        if self.group_id == "":
            raise ConfigError("group_id must not be empty", settings=("group_id",))
        if self.group_id is None:
            for name in ("topics", "group_instance_id"):
                if getattr(self, name):
                    raise ConfigError(
                        f"{name} is set, and group_id is not",
                        settings=(name, "group_id"),
                        hint="Set group_id; without a group, partitions are assigned by hand (`assign`).",
                    )
            return
        if self.group_protocol == "consumer":
            for name in ("session_timeout_ms", "heartbeat_interval_ms"):
                if not is_default(getattr(self, name)):
                    raise ConfigError(
                        f"{name} is set, and group_protocol is consumer",
                        settings=(name, "group_protocol"),
                        hint="With KIP-848 the broker decides: group.consumer.session.timeout.ms and others.",
                    )
        try:
            self.membership_settings()
            self.made_assignors()
        except ValueError as why:
            raise ConfigError(str(why), settings=("group_id", "partition_assignment_strategy")) from None

    def membership_settings(self) -> MembershipSettings:
        """What it says of the member. Raises ValueError."""
        assert self.group_id is not None
        return MembershipSettings(
            group_id=self.group_id,
            group_instance_id=self.group_instance_id,
            rack=self.client_rack or None,
            session_timeout_ms=self.session_timeout_ms,
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            max_poll_interval_ms=self.max_poll_interval_ms,
            request_timeout_ms=self.request_timeout_ms,
            server_assignor=self.group_remote_assignor,
        )

    def made_assignors(self) -> list[Assignor]:
        """Those of one member. Raises ValueError where they do not go together."""
        made = assignors(self.partition_assignment_strategy)
        rebalance_protocol(made)
        return made

    def fetch_settings(self) -> FetchSettings:
        """What it says of fetching. Errors that pass are waited for without an end, as Kafka's consumer does."""
        return FetchSettings(
            fetch_min_bytes=self.fetch_min_bytes,
            fetch_max_bytes=self.fetch_max_bytes,
            fetch_max_wait_ms=self.fetch_max_wait_ms,
            max_partition_fetch_bytes=self.max_partition_fetch_bytes,
            check_crcs=self.check_crcs,
            isolation_level=self.isolation_level,
            auto_offset_reset=self.auto_offset_reset,
            request_timeout_ms=self.request_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            buffer_bytes=self.prefetch_bytes,
            retry_timeout_ms=None,
            client_rack=self.client_rack,
            replica_max_age_ms=self.metadata_max_age_ms,
            follows_new_topics=True,
        )
