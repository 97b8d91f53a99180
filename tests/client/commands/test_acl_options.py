"""The options of `odradek acls`: operations by any of their spellings, and names as they are written."""

import click
import pytest

from odradek.client.admin.acls import CLUSTER_NAME, AclOperation, AclResourceType
from odradek.client.commands.acl_options import OPERATIONS, NonEmpty, OperationName, operations_of, resources_of


@pytest.mark.parametrize("text", ["DescribeConfigs", "DESCRIBE_CONFIGS", "describe-configs", "describeconfigs"])
def test_an_operation_may_be_spelled_as_any_tool_spells_it(text: str) -> None:
    assert operations_of((OperationName().convert(text, None, None),)) == [AclOperation.DESCRIBE_CONFIGS]


def test_every_operation_that_an_acl_can_hold_has_a_name() -> None:
    assert set(operations_of(OPERATIONS)) == set(AclOperation) - {AclOperation.UNKNOWN, AclOperation.ANY}
    assert operations_of(("read", "write", "read")) == [AclOperation.READ, AclOperation.WRITE]


def test_names_are_taken_as_they_are_written() -> None:
    assert NonEmpty().convert(" orders ", None, None) == " orders "
    with pytest.raises(click.BadParameter, match="empty"):
        NonEmpty().convert("", None, None)


def test_resources_stand_in_the_order_of_their_types_each_once() -> None:
    assert resources_of(("b", "a", "b"), ("g",), (), True, ("u",), ("d",)) == [
        (AclResourceType.TOPIC, "b"),
        (AclResourceType.TOPIC, "a"),
        (AclResourceType.GROUP, "g"),
        (AclResourceType.CLUSTER, CLUSTER_NAME),
        (AclResourceType.USER, "u"),
        (AclResourceType.DELEGATION_TOKEN, "d"),
    ]
