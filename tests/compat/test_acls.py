"""ACLs by the clients of others: created, described by what filters say, and deleted again.

Everybody is `User:ANONYMOUS` here, who is super user; that nobody else may what ACLs do not allow is shown elsewhere.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import admin as librdkafkas
from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, KafkaAdminClient
from kafka.admin import ACLResourcePatternType as PatternType
from kafka.admin import ResourcePattern as Pattern
from kafka.admin import ResourcePatternFilter as PatternFilter
from kafka.admin import ResourceType as Type

from odradek.broker.config.access_options import STANDARD_AUTHORIZER
from processes.odradek_broker import OdradekBroker, settings_words

pytestmark = [pytest.mark.compat]

RULES = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
TIMEOUT_S = 20


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with OdradekBroker(tmp_path_factory.mktemp("acls") / "data", *settings_words(RULES)) as broker:
        yield broker.bootstrap
        assert "ERROR" not in broker.output, broker.output


def test_kafka_python_creates_describes_and_deletes_them(bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        topic = ACL("User:test", "*", ACLOperation.WRITE, ACLPermissionType.ALLOW, Pattern(Type.TOPIC, "python"))
        created = admin.create_acls([topic])
        assert (len(created["succeeded"]), created["failed"]) == (1, [])
        pattern = PatternFilter(Type.TOPIC, "python", PatternType.ANY)
        wanted = ACLFilter("User:test", "*", ACLOperation.ANY, ACLPermissionType.ANY, pattern)
        found, error = admin.describe_acls(wanted)
        assert error is None or error.errno == 0
        assert found == [topic]
        deleted = admin.delete_acls([wanted])
        assert [matching for _, matching, _ in deleted] == [[topic]]
        assert admin.describe_acls(wanted)[0] == []
    finally:
        admin.close()


def test_librdkafka_creates_describes_and_deletes_them(bootstrap: str) -> None:
    kit: Any = librdkafkas  # whose types are not told
    admin = kit.AdminClient({"bootstrap.servers": bootstrap})
    fields = "User:test", "*", kit.AclOperation.READ, kit.AclPermissionType.DENY
    prefixed = kit.AclBinding(kit.ResourceType.GROUP, "confluent", kit.ResourcePatternType.PREFIXED, *fields)
    literal = kit.AclBinding(kit.ResourceType.TRANSACTIONAL_ID, "confluent-1", kit.ResourcePatternType.LITERAL, *fields)
    for future in admin.create_acls([prefixed, literal], request_timeout=TIMEOUT_S).values():
        assert future.result() is None
    anything = None, None, kit.AclOperation.ANY, kit.AclPermissionType.ANY
    matching = kit.AclBindingFilter(kit.ResourceType.ANY, "confluent-1", kit.ResourcePatternType.MATCH, *anything)
    assert set(admin.describe_acls(matching, request_timeout=TIMEOUT_S).result()) == {prefixed, literal}
    of_groups = kit.AclBindingFilter(kit.ResourceType.GROUP, None, kit.ResourcePatternType.ANY, *anything)
    (deleted,) = admin.delete_acls([of_groups], request_timeout=TIMEOUT_S).values()
    assert deleted.result() == [prefixed]
    assert admin.describe_acls(matching, request_timeout=TIMEOUT_S).result() == [literal]
