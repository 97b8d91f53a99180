"""Log levels as a resource whose configuration clients read and change: BROKER_LOGGER, the id of this broker (KIP-412).

What is set lasts until the broker ends. The checks are Kafka's (ConfigAdminManager.scala).
"""

from collections.abc import Sequence

from odradek.broker.config.alterations import Alteration
from odradek.broker.config.broker_config import ConfigEntry, ConfigSource
from odradek.broker.config.option import ConfigType
from odradek.broker.handling.config_resources import broker_of
from odradek.broker.handling.context import Context
from odradek.broker.observability.log_levels import LEVELS, ROOT, exists, levels, set_level
from odradek.protocol.configs import Operation
from odradek.protocol.errors import ErrorCode, KafkaError


def describe_loggers(context: Context, name: str, names: frozenset[str] | None) -> list[ConfigEntry]:
    """Every logger, or those of `names`, with its level. Raises KafkaError INVALID_REQUEST for another broker."""
    _require_this_broker(context, name)
    return [
        ConfigEntry(
            name=logger,
            value=level,
            source=ConfigSource.DYNAMIC_BROKER_LOGGER,
            is_read_only=False,
            is_sensitive=False,
            type=ConfigType.UNKNOWN,
            documentation=None,
            synonyms=(),
        )
        for logger, level in levels().items()
        if names is None or logger in names
    ]


def alter_loggers(context: Context, name: str, alterations: Sequence[Alteration], *, validate_only: bool) -> None:
    """Sets all levels, or none. Raises KafkaError: INVALID_REQUEST, INVALID_CONFIG for a logger or level that there is
    not."""
    _require_this_broker(context, name)
    for alteration in alterations:
        _check(alteration)
    if not validate_only:
        for logger, operation, level in alterations:
            set_level(logger, level if operation == Operation.SET else None)


def _require_this_broker(context: Context, name: str) -> None:
    if broker_of(context, name) is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Loggers are those of one broker: the id is missing")


def _check(alteration: Alteration) -> None:
    logger, operation, level = alteration
    if operation not in (Operation.SET, Operation.DELETE):
        known = {each.value: each.name for each in Operation}
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{known.get(operation, operation)} operation is not allowed for the BROKER_LOGGER resource",
        )
    if not exists(logger):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {logger} does not exist!")
    if operation == Operation.DELETE and logger == ROOT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Removing the log level of the {ROOT} logger is not allowed")
    if operation == Operation.SET and level not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}",
        )
