"""Without an authorizer: everybody may do everything, and the answers say so."""

from odradek.broker.access.access import Access
from odradek.broker.access.operations import CLUSTER_OPERATIONS, SUPPORTED, TOPIC_OPERATIONS, Operation, bit_field
from odradek.broker.access.resource import CLUSTER, Resource, ResourceType, of_topic
from tests.broker.access.rules import Asking


def test_everybody_may_do_everything() -> None:
    access = Access()
    for kind, operations in SUPPORTED.items():
        for operation in operations:
            access.require(Asking(), operation, Resource(kind, "x"))
            access.require_by_rules(Asking(), operation, Resource(kind, "x"))
            assert access.permits_any(Asking(), operation, kind)
    assert access.authorized_operations(Asking(), of_topic("orders")) == TOPIC_OPERATIONS == 3576
    assert access.authorized_operations(Asking(), CLUSTER) == CLUSTER_OPERATIONS == 8096
    assert (access.is_ruled, access.is_enforced, access.generation) == (False, False, 0)
    assert access.is_certain(Asking())


def test_every_type_has_its_operations() -> None:
    assert SUPPORTED.keys() == set(ResourceType)
    assert bit_field(*SUPPORTED[ResourceType.GROUP]) == bit_field(
        Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
    )
