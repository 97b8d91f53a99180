"""Whole clusters whose brokers know one another by SASL: they replicate, forward and renew, and strangers do not."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from odradek import Producer
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.scram_store import write_first_user
from odradek.broker.config.listeners import Listener
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.launch.cluster_settings import cluster_settings
from odradek.broker.launch.stopping import stop_all
from odradek.broker.server import Broker
from odradek.runtime.environment import Environment
from tests.broker.authentication.listeners import ALICE, ALL, OAUTH_MODULE, PASSWORD, PLAIN_MODULE

FREE = Listener("OUTSIDE", "127.0.0.1", 0)
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "between brokers"  # noqa: S105  (nobody's)
PATIENCE_S = 20.0


def options_of(mechanism: str, password: str = SECRET) -> dict[str, str]:
    module = {"PLAIN": PLAIN_MODULE, "OAUTHBEARER": OAUTH_MODULE}.get(mechanism, SCRAM_MODULE)
    users = f' user_broker="{SECRET}" user_{ALICE}="{PASSWORD}"' if mechanism == "PLAIN" else ""
    own = f'{module} required username="broker" password="{password}"{users} unsecuredLoginStringClaim_sub="broker";'
    return ALL | {
        "listener.security.protocol.map": "OUTSIDE:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"listener.name.outside.{mechanism.lower()}.sasl.jaas.config": own,
    }


@asynccontextmanager
async def cluster(*options: Mapping[str, str]) -> AsyncGenerator[Sequence[Broker]]:
    """A broker for each of these, on one store, in which the brokers' user stands."""
    store, environment = MemoryStore(), Environment()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        await write_first_user(store, mechanism, "broker", SECRET)
    count = len(options)
    settings = [cluster_settings(count, FREE, None, each)[number] for number, each in enumerate(options)]
    brokers = [Broker(each, environment, MemoryDisk(), store=store) for each in settings]
    for broker in brokers:
        await broker.start()
    try:
        yield brokers
    finally:
        await stop_all(brokers)
        await store.close()


def producer(broker: Broker, password: str = PASSWORD) -> Producer:
    return Producer(
        str(next(iter(broker.endpoints.values()))),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=ALICE,
        sasl_password=password,
    )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
async def test_brokers_replicate_what_clients_send(mechanism: str) -> None:
    async with cluster(*[options_of(mechanism)] * 3) as brokers, producer(brokers[0]) as client:
        for number in range(20):
            await (await client.send("orders", b"%d" % number, partition=0))
        image = brokers[0].context.metadata.image
        assert len(image.topics["orders"].partitions[0].replicas) == 3
        assert len(image.topics["orders"].partitions[0].isr) == 3, "acks=all was answered by all of them"
        used = [broker.context.authentication.counts.successes for broker in brokers if broker.context.authentication]
        assert any(counts["OUTSIDE", mechanism] for counts in used)


async def test_sessions_between_brokers_are_renewed() -> None:
    options = options_of("SCRAM-SHA-512") | {
        "listener.name.outside.scram-sha-512.connections.max.reauth.ms": "1500",
    }
    async with cluster(*[options] * 2) as brokers, producer(brokers[0]) as client:
        async with asyncio.timeout(PATIENCE_S):
            while not any(
                broker.context.authentication and broker.context.authentication.counts.renewals for broker in brokers
            ):
                await (await client.send("orders", b"x", partition=0))
                await asyncio.sleep(0.1)
        for broker in brokers:
            assert broker.context.authentication is not None
            assert not broker.context.authentication.counts.expired


async def test_a_broker_with_another_password_is_not_let_in(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with cluster(options_of("PLAIN"), options_of("PLAIN", "wrong")) as brokers:
            counts = [broker.context.authentication.counts for broker in brokers if broker.context.authentication]
            async with producer(brokers[0]) as client:
                await (await client.send("orders", b"x", partition=0))
                async with asyncio.timeout(PATIENCE_S):
                    while not counts[0].failures["OUTSIDE", "PLAIN"]:  # noqa: ASYNC110 - counters tell nobody
                        await asyncio.sleep(0.05)
    assert "by PLAIN as 'broker': no such user with this password" in caplog.text
    assert "wrong" not in caplog.text and SECRET not in caplog.text


async def test_nothing_secret_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(1):
        async with cluster(*[options_of("SCRAM-SHA-512")] * 2) as brokers, producer(brokers[0]) as client:
            await (await client.send("orders", b"x", partition=0))
    for secret in (SECRET, PASSWORD):
        assert secret not in caplog.text
