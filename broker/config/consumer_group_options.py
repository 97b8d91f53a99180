"""What a consumer group may set for itself (resource GROUP of DescribeConfigs; Kafka's GroupConfig), one row each.

An option that the group does not set is the broker's of the longer name, its synonym. One that it sets lies within the
broker's `group.consumer.min...` and `group.consumer.max...`, which are looked at when it is set and, since the broker's
options may change, again when it is read: then it is the nearest value within them.
"""

from typing import Any, Final

from odradek.broker.config.option import INT, MINUTE_MS, ConfigError, Option, rows, unknown_name


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class ConsumerGroupOptions:
    """In order of the names."""

    consumer_assignment_interval_ms = Option(
        "consumer.assignment.interval.ms", INT, 1000,
        "How long after an assignment of the group the next one may be worked out.", minimum=0, unit="ms",
        synonym="group.consumer.assignment.interval.ms",
    )
    consumer_heartbeat_interval_ms = Option(
        "consumer.heartbeat.interval.ms", INT, 5000, "How often the members are to say that they are there.",
        minimum=1, unit="ms", synonym="group.consumer.heartbeat.interval.ms",
    )
    consumer_session_timeout_ms = Option(
        "consumer.session.timeout.ms", INT, 3 * MINUTE_MS // 4, "How long a member may be silent before it is removed.",
        minimum=1, unit="ms", synonym="group.consumer.session.timeout.ms",
    )
# fmt: on


CONSUMER_GROUP_OPTIONS: dict[str, Option[Any]] = rows(ConsumerGroupOptions)

_OF_OTHER_GROUPS: Final = {"share.": "share groups (KIP-932)", "streams.": "streams groups (KIP-1071)"}
_OFFLOAD: Final = "consumer.assignor.offload.enable"


def group_row(name: str) -> Option[Any]:
    """The option of this name. Raises ConfigError, which says why there is none."""
    if (row := CONSUMER_GROUP_OPTIONS.get(name)) is not None:
        return row
    for prefix, groups in _OF_OTHER_GROUPS.items():
        if name.startswith(prefix):
            raise ConfigError(f"{name} is an option of {groups}, which this broker does not coordinate")
    if name == _OFFLOAD:
        raise ConfigError(f"{name} has no effect here: assignments are worked out by the coordinator itself")
    for row in CONSUMER_GROUP_OPTIONS.values():
        if row.synonym == name:
            raise ConfigError(f"Unknown group config name: {name}; for a group it is {row.name}")
    raise unknown_name("group", name, tuple(CONSUMER_GROUP_OPTIONS))


def lowest_of(name: str) -> str:
    """The broker's option that says how low this one of a group may be."""
    return name.replace("consumer.", "group.consumer.min.", 1)


def highest_of(name: str) -> str:
    return name.replace("consumer.", "group.consumer.max.", 1)
