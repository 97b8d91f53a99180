"""A plugin of pytest for confluent-kafka-python's tests: the project's own registry of schemas in memory, in place of a
server. Of a cluster that is given they know no registry for asyncio."""

import importlib
from functools import cache
from typing import Any

clients: Any = importlib.import_module("confluent_kafka.schema_registry")  # which the checkers of types do not find
given: Any = importlib.import_module("tests.integration.cluster_fixture").ByoFixture


@cache
def registry(_: Any) -> Any:
    """The one registry of a cluster, as all of a test's clients see the same."""
    return clients.SchemaRegistryClient.new_client({"url": "mock://"})


@cache
def async_registry(_: Any) -> Any:
    return clients.AsyncSchemaRegistryClient.new_client({"url": "mock://"})


given.schema_registry = registry
given.async_schema_registry = async_registry
