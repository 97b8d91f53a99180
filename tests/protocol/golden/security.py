"""What clients say about ACLs, quotas and credentials: another Apache Kafka, with an authorizer.

Each client makes what it has calls for, looks until it is there, and takes it away again: the next one finds nothing.
"""

from importlib import import_module
from typing import Any

from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from odradek.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from odradek.protocol.messages.create_acls import CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from processes.apache_kafka import ApacheKafka
from processes.jars import APACHE_KAFKA, fetch, resolve
from tests.protocol.golden import files
from tests.protocol.golden.clients import OLD_JAVA, PASSWORD, USER, address, run_java, until
from tests.protocol.golden.tee import Exchange, Tee

kafka_python: Any = import_module("kafka")
kafka_admin: Any = import_module("kafka.admin")
confluent_admin: Any = import_module("confluent_kafka.admin")

TOPIC = files.TOPIC
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
OF_SECURITY = (
    DescribeAclsRequest.api_key,
    CreateAclsRequest.api_key,
    DeleteAclsRequest.api_key,
    DescribeClientQuotasRequest.api_key,
    AlterClientQuotasRequest.api_key,
    DescribeUserScramCredentialsRequest.api_key,
    AlterUserScramCredentialsRequest.api_key,
)
_ACL = {"principal": f"User:{USER}", "host": "*", "operation": 3, "permission_type": 3}

SAID_OF_SECURITY: dict[str, dict[str, Any]] = {
    "CreateAclsRequest": {
        "creations[0].resource_type": 2,
        "creations[0].resource_name": TOPIC,
        **{f"creations[0].{name}": value for name, value in _ACL.items()},
    },
    "CreateAclsResponse": {"results[0].error_code": 0},
    "DescribeAclsRequest": {
        "resource_type_filter": 2,
        "resource_name_filter": TOPIC,
        "principal_filter": f"User:{USER}",
        "operation": 3,
    },
    "DescribeAclsResponse": {
        "error_code": 0,
        "resources[0].resource_name": TOPIC,
        **{f"resources[0].acls[0].{name}": value for name, value in _ACL.items()},
    },
    "DeleteAclsRequest": {"filters[0].resource_name_filter": TOPIC, "filters[0].principal_filter": f"User:{USER}"},
    "DeleteAclsResponse": {
        "filter_results[0].error_code": 0,
        "filter_results[0].matching_acls[0].resource_name": TOPIC,
    },
    "AlterClientQuotasRequest": {"entries[0].entity[0].entity_type": "user", "entries[0].entity[0].entity_name": USER},
    "AlterClientQuotasResponse": {"entries[0].error_code": 0, "entries[0].entity[0].entity_name": USER},
    "DescribeClientQuotasRequest": {"components[0].entity_type": "user", "components[0].match": USER},
    "DescribeClientQuotasResponse": {"error_code": 0, "entries[0].entity[0].entity_name": USER},
    "AlterUserScramCredentialsRequest": {},
    "AlterUserScramCredentialsResponse": {"results[0].user": USER, "results[0].error_code": 0},
    "DescribeUserScramCredentialsRequest": {},
    "DescribeUserScramCredentialsResponse": {"error_code": 0, "results[0].user": USER},
}
"""What the messages say by the way they were made, as in capture.py."""


def security() -> list[Exchange]:
    """All that was sent."""
    with (
        Tee() as tee,
        ApacheKafka(properties={"advertised.listeners": f"PLAINTEXT://{address(tee)}", **AUTHORIZER}) as kafka,
    ):
        tee.upstream = (kafka.host, kafka.port)
        tee.source = "kafka-python"
        change_with_kafka_python(tee)
        tee.source = "librdkafka"
        change_with_librdkafka(tee)
        tee.source = "java"
        run_java(tee, resolve(*APACHE_KAFKA), "java_security.jsh")
        tee.source = "java-3.9"
        run_java(tee, fetch(OLD_JAVA), "java_security.jsh")
    return [exchange for exchange in tee.exchanges if exchange.api_key in OF_SECURITY and not is_too_long(exchange)]


def is_too_long(exchange: Exchange) -> bool:
    """librdkafka sends a byte behind the body of AlterUserScramCredentials, which no description has."""
    return (exchange.source, exchange.api_key) == ("librdkafka", AlterUserScramCredentialsRequest.api_key)


def change_with_kafka_python(tee: Tee) -> None:
    pattern = kafka_admin.ResourcePattern(kafka_admin.ResourceType.TOPIC, TOPIC)
    read, allow = kafka_admin.ACLOperation.READ, kafka_admin.ACLPermissionType.ALLOW
    acl = kafka_admin.ACL(f"User:{USER}", "*", read, allow, pattern)
    with kafka_python.KafkaAdminClient(bootstrap_servers=address(tee)) as admin:
        admin.create_acls([acl])
        wanted = kafka_admin.ACLFilter(f"User:{USER}", "*", read, allow, pattern)
        until(lambda: admin.describe_acls(wanted)[0])
        admin.delete_acls([wanted])


def change_with_librdkafka(tee: Tee) -> None:
    admin = confluent_admin.AdminClient({"bootstrap.servers": address(tee)})
    literal, topics = confluent_admin.ResourcePatternType.LITERAL, confluent_admin.ResourceType.TOPIC
    what = (topics, TOPIC, literal, f"User:{USER}", "*", confluent_admin.AclOperation.READ)
    allow = confluent_admin.AclPermissionType.ALLOW
    settle(admin.create_acls([confluent_admin.AclBinding(*what, allow)]))
    wanted = confluent_admin.AclBindingFilter(*what, allow)
    until(lambda: admin.describe_acls(wanted).result(10))
    settle(admin.delete_acls([wanted]))
    mechanism = confluent_admin.ScramMechanism.SCRAM_SHA_256
    info = confluent_admin.ScramCredentialInfo(mechanism, 4096)
    settle(
        admin.alter_user_scram_credentials(
            [confluent_admin.UserScramCredentialUpsertion(USER, info, PASSWORD.encode())]
        )
    )
    until(lambda: admin.describe_user_scram_credentials().result(10))
    settle(admin.alter_user_scram_credentials([confluent_admin.UserScramCredentialDeletion(USER, mechanism)]))


def settle(futures: Any) -> None:
    for future in futures.values():
        future.result(10)
