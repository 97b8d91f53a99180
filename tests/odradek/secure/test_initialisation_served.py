"""What `odradek secure init` has made runs: the broker starts with it, and each client may do what is its own."""

import sys
from pathlib import Path

import pytest

from odradek import Admin, AuthorizationError, Producer
from odradek.client.admin.admin import Admin as AdminClient
from odradek.client.commands.options import Target
from odradek.client.errors.base import ClientError
from odradek.runtime.environment import Environment
from odradek.secure.initialisation import initialise
from odradek.secure.listener_facts import ClientCertificate
from odradek.secure.plan import Plan
from odradek.secure.probes import look_at
from odradek.secure.tls_contexts import trusting
from processes.child_process import ChildProcess
from processes.free_ports import free_ports
from processes.odradek_broker import READY, OdradekFailed
from tests.odradek.secure.test_texts import module_of

# They come with the rest of what a secure broker is made of.
for room in ("tls", "authentication", "access.authorizer", "cluster.acls", "cluster.scram_store"):
    pytest.importorskip(f"odradek.broker.{room}")


class SecureBroker(ChildProcess):
    """`odradek serve --config FILE`, and nothing else."""

    failure = OdradekFailed

    def __init__(self, config_file: Path) -> None:
        super().__init__("secure-broker")
        self._config_file = config_file

    def command(self) -> list[str]:
        return [sys.executable, "-m", "odradek", "serve", "--config", str(self._config_file)]

    def is_ready_line(self, line: str) -> bool:
        return READY.match(line) is not None


def client_of(directory: Path, user: str) -> AdminClient:
    return Target(config_file=str(directory / "clients" / user / "client.properties")).admin()


async def test_a_broker_serves_what_was_made_to_whom_it_is_for(tmp_path: Path) -> None:
    place, port = tmp_path / "secure", free_ports(1)[0]
    plan = Plan(["localhost"], ["billing", "reports"], str(place), str(place / "data"), "127.0.0.1", port)
    await initialise(plan, Environment())
    with SecureBroker(place / "secure.properties"):
        async with client_of(place, "admin") as admin:
            assert await admin.list_topics() == []
            assert len(await admin.describe_acls()) == 28
            assert set(await admin.describe_user_scram_credentials()) == {"admin", "broker", "billing", "reports"}
            await admin.create_topic("orders", partitions=1)
        async with client_of(place, "billing") as billing:
            await billing.create_topic("billing.orders", partitions=1)
            assert [topic.name for topic in await billing.list_topics()] == ["billing.orders"]
            with pytest.raises(AuthorizationError):
                await billing.create_topic("orders2", partitions=1)
            with pytest.raises(ClientError):
                await billing.describe_acls()
        settings = module_of((place / "clients" / "billing" / "client.py").read_text()).ODRADEK
        async with Producer(**settings) as producer:
            assert (await (await producer.send("billing.orders", b"first"))).offset == 0
            with pytest.raises(AuthorizationError):
                await (await producer.send("orders", b"second"))
        async with client_of(place, "reports") as reports:
            assert await reports.list_topics() == []
        with pytest.raises(ClientError):
            async with Admin(plan.bootstrap, default_api_timeout_ms=2_000):
                pytest.fail("it got in without a password")
        facts = await look_at("localhost", port, trusting(str(place / "ca.pem")), 20.0)
    assert facts.protocol == "SASL_SSL"
    assert facts.tls is not None
    assert facts.tls.untrusted is None
    assert facts.tls.client_certificate is ClientCertificate.NONE
    assert facts.kafka is not None
    assert not facts.kafka.answers_metadata
