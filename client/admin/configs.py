"""The options of topics, groups and brokers as Admin takes and returns them, and what that is on the wire. Pure.

Numbers and names are those of ConfigResource.java, ConfigEntry.java and AlterConfigOp.java.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Self

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.protocol.configs import Operation, ResourceType
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

__all__ = [
    "ConfigChange",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "Operation",
    "ResourceType",
]


class ConfigResource(NamedTuple):
    """Whose options: a topic by its name, a consumer group (KIP-848) by its id, a broker by its id. The broker named ""
    stands for the default of all."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int | None = None) -> "ConfigResource":
        """A broker, or the default of all brokers."""
        return cls(ResourceType.BROKER, "" if node_id is None else str(node_id))

    @classmethod
    def group(cls, group_id: str) -> "ConfigResource":
        return cls(ResourceType.GROUP, group_id)

    @property
    def node_id(self) -> int | None:
        """The broker that has to be asked itself, since no other knows; None: any broker will do (KIP-226)."""
        if self.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and self.name.isdecimal():
            return int(self.name)
        return None

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', ' ')} {self.name or 'default'}"


class _Answered(Enum):
    """Numbers of an answer, of which a newer broker may know more."""

    @classmethod
    def of(cls, number: int) -> Self:
        """UNKNOWN for what this client does not know."""
        return cls(number) if number in cls._value2member_map_ else cls["UNKNOWN"]


class ConfigSource(_Answered):
    """Where a value comes from."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigType(_Answered):
    """What a value is (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """Another place where an option can be set. The first of an entry's synonyms is the one that counts."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """An option. `value` is None where it has none, or is a secret (`is_sensitive`)."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it: neither for the resource nor for the brokers."""
        return self.source is ConfigSource.DEFAULT


class ConfigChange(NamedTuple):
    """One change of one option. `value` is None with DELETE."""

    name: str
    operation: Operation
    value: str | None = None

    @classmethod
    def set(cls, name: str, value: str) -> "ConfigChange":
        return cls(name, Operation.SET, value)

    @classmethod
    def delete(cls, name: str) -> "ConfigChange":
        return cls(name, Operation.DELETE)

    @classmethod
    def append(cls, name: str, value: str) -> "ConfigChange":
        return cls(name, Operation.APPEND, value)

    @classmethod
    def subtract(cls, name: str, value: str) -> "ConfigChange":
        return cls(name, Operation.SUBTRACT, value)


def describe_configs_request(
    resources: Iterable[ConfigResource], names: Sequence[str] | None, *, synonyms: bool, documentation: bool
) -> DescribeConfigsRequest:
    """`names`: of the options wanted; None: all."""
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configuration_keys=None if names is None else list(names),
            )
            for resource in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )


def described_configs(
    response: DescribeConfigsResponse,
) -> dict[ConfigResource, dict[str, ConfigEntry] | ClientError]:
    outcomes: dict[ConfigResource, dict[str, ConfigEntry] | ClientError] = {}
    for result in response.results:
        resource = _resource(result.resource_type, result.resource_name)
        if resource is None:
            continue
        if result.error_code:
            what = f"DescribeConfigs of {resource}"
            outcomes[resource] = broker_error(result.error_code, result.error_message, what)
        else:
            outcomes[resource] = {each.name: _entry(each) for each in result.configs}
    return outcomes


def _entry(result: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        result.name,
        result.value,
        ConfigSource.of(result.config_source),
        result.read_only,
        result.is_sensitive,
        tuple(ConfigSynonym(each.name, each.value, ConfigSource.of(each.source)) for each in result.synonyms),
        ConfigType.of(result.config_type),
        result.documentation,
    )


def alter_configs_request(
    changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool
) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    AlterableConfig(name=each.name, config_operation=each.operation, value=each.value)
                    for each in its_changes
                ],
            )
            for resource, its_changes in changes.items()
        ],
        validate_only=validate_only,
    )


def altered_configs(response: IncrementalAlterConfigsResponse) -> dict[ConfigResource, ClientError | None]:
    outcomes: dict[ConfigResource, ClientError | None] = {}
    for result in response.responses:
        resource = _resource(result.resource_type, result.resource_name)
        if resource is not None:
            what = f"IncrementalAlterConfigs of {resource}"
            failed = broker_error(result.error_code, result.error_message, what) if result.error_code else None
            outcomes[resource] = failed
    return outcomes


def _resource(kind: int, name: str) -> ConfigResource | None:
    """None for a type that nobody here has asked for."""
    return ConfigResource(ResourceType(kind), name) if kind in ResourceType._value2member_map_ else None
