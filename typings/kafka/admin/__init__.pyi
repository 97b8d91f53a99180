from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from types import TracebackType
from typing import Any, Self

from kafka.structs import TopicPartition

class ConfigResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4

class AlterConfigOp(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3

class ConfigResource:
    resource_type: ConfigResourceType
    name: str
    configs: Any
    def __init__(
        self,
        resource_type: ConfigResourceType | str,
        name: str,
        configs: Mapping[str, Any] | Iterable[str] | None = None,
    ) -> None: ...

class NewTopic:
    def __init__(
        self,
        name: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        replica_assignments: Mapping[int, Sequence[int]] | None = None,
        topic_configs: Mapping[str, str] | None = None,
    ) -> None: ...

class ResourceType(IntEnum):
    ANY = 1
    TOPIC = 2

class ACLOperation(IntEnum):
    ANY = 1
    READ = 3
    WRITE = 4

class ACLPermissionType(IntEnum):
    ANY = 1
    DENY = 2
    ALLOW = 3

class ACLResourcePatternType(IntEnum):
    ANY = 1
    LITERAL = 3

class ResourcePatternFilter:
    def __init__(
        self, resource_type: ResourceType, resource_name: str | None, pattern_type: ACLResourcePatternType
    ) -> None: ...

class ResourcePattern(ResourcePatternFilter):
    def __init__(
        self, resource_type: ResourceType, resource_name: str, pattern_type: ACLResourcePatternType = ...
    ) -> None: ...

class ACLFilter:
    def __init__(
        self,
        principal: str | None,
        host: str | None,
        operation: ACLOperation,
        permission_type: ACLPermissionType,
        resource_pattern: ResourcePatternFilter,
    ) -> None: ...

class ACL(ACLFilter): ...

class KafkaAdminClient:
    config: dict[str, Any]
    def __init__(self, **configs: Any) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def close(self) -> None: ...
    def api_versions(self) -> Any: ...
    def get_broker_version_data(self, broker_id: int) -> Any: ...
    def describe_cluster(self) -> dict[str, Any]: ...
    def describe_log_dirs(
        self, topic_partitions: Any = None, brokers: Sequence[int] | None = None
    ) -> Any: ...
    def create_acls(self, acls: Sequence[ACL]) -> dict[str, Any]: ...
    def describe_acls(self, acl_filter: ACLFilter) -> tuple[list[ACL], Any]: ...
    def delete_acls(self, acl_filters: Sequence[ACLFilter]) -> list[tuple[ACLFilter, list[ACL], Any]]: ...
    def list_topics(self) -> list[str]: ...
    def describe_topics(self, topics: Iterable[str] | None = None) -> list[dict[str, Any]]: ...
    def create_topics(
        self,
        new_topics: Sequence[str] | Mapping[str, Mapping[str, Any]] | Sequence[NewTopic],
        timeout_ms: int | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
        wait_for_metadata: bool = False,
    ) -> dict[str, Any]: ...
    def wait_for_topics(self, topic_names: Sequence[str], timeout_ms: int = 10000) -> None: ...
    def delete_topics(
        self, topics: Sequence[str], timeout_ms: int | None = None, raise_errors: bool = True
    ) -> dict[str, Any]: ...
    def create_partitions(
        self,
        topic_partitions: Mapping[str, int | Mapping[str, Any]],
        timeout_ms: int | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> Any: ...
    def delete_records(
        self,
        records_to_delete: Mapping[TopicPartition, int],
        timeout_ms: int | None = None,
        partition_leader_id: int | None = None,
    ) -> Any: ...
    def describe_topic_partitions(
        self, topics: Sequence[str], response_partition_limit: int = 2000, cursor: Any = None
    ) -> Any: ...
    def describe_configs(
        self, config_resources: Sequence[ConfigResource], include_synonyms: bool = False, config_filter: Any = "modified"
    ) -> Any: ...
    def alter_configs(
        self,
        config_resources: Sequence[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
    ) -> Any: ...
    def reset_configs(
        self,
        config_resources: Sequence[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
    ) -> Any: ...
    def list_partition_offsets(
        self, topic_partition_specs: Mapping[TopicPartition, Any], isolation_level: Any = ..., timeout_ms: int | None = None
    ) -> Any: ...
