"""Asking etcd when something is in the way: lost answers, refusals, users and tokens, TLS, wrong addresses."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from odradek.broker.cluster.etcd.client import Client, EtcdRefusal
from odradek.broker.cluster.etcd.member import CallFailed, Member
from odradek.broker.cluster.etcd.members import Members
from odradek.broker.cluster.etcd.messages import TXN
from odradek.broker.cluster.store import StoreClosed, StoreRefused, Txn, Unknown, Unreachable
from odradek.runtime.environment import Environment
from processes.etcd_server import EtcdServer
from processes.etcd_stores import etcd_store, told
from processes.free_ports import free_ports
from tests.broker.cluster.etcd.relay import relay
from tests.client.certificates import Certificates, make_certificates

pytestmark = [pytest.mark.asyncio, pytest.mark.both_loops]

QUICK = {"metadata.request.timeout.ms": "500"}


# -- answers that get lost --------------------------------------------------------------------------------------------


async def test_a_commit_whose_answer_is_lost_is_unknown_and_happened_once(etcd_server: EtcdServer) -> None:
    """The truth can be read back. Sent twice, the second would have found the key, and said Conflict."""
    async with (
        relay(etcd_server.members[0].port) as wire,
        etcd_store(f"etcd://127.0.0.1:{wire.port}/lost", QUICK) as store,
    ):
        before = await store.commit(Txn(put={"/a": b"0"}))
        wire.drops_answers = True
        with pytest.raises(Unknown, match="gave no answer: the outcome is unknown"):
            await store.commit(Txn(expect={"/a": before}, put={"/a": b"1"}))
        wire.drops_answers = False
        wire.cut()
        entry = (await store.read("/a")).entries["/a"]
        assert (entry.value, entry.revision) == (b"1", before + 1)


async def test_a_commit_whose_connection_breaks_is_unknown(etcd_server: EtcdServer) -> None:
    """As soon as it breaks, whatever the time that was left."""
    async with (
        relay(etcd_server.members[0].port) as wire,
        etcd_store(f"etcd://127.0.0.1:{wire.port}/broken", {"metadata.request.timeout.ms": "60000"}) as store,
    ):
        revision = await store.commit(Txn(put={"/a": b"0"}))
        wire.drops_answers = True
        committing = asyncio.ensure_future(store.commit(Txn(expect={"/a": revision}, put={"/a": b"1"})))
        await wire.answers_dropped.wait()
        wire.cut()
        with pytest.raises(Unknown, match="the outcome is unknown"):
            await committing


async def test_reading_is_repeated_until_the_time_is_over(etcd_server: EtcdServer) -> None:
    async with (
        relay(etcd_server.members[0].port) as wire,
        etcd_store(f"etcd://127.0.0.1:{wire.port}/read", {"metadata.request.timeout.ms": "60000"}) as store,
    ):
        await store.commit(Txn(put={"/a": b"0"}))
        wire.drops_answers = True
        reading = asyncio.ensure_future(store.read("/"))
        await wire.answers_dropped.wait()
        wire.drops_answers = False
        wire.cut()
        assert list((await reading).entries) == ["/a"]


async def test_what_is_under_way_when_the_store_closes_is_told_so(etcd_server: EtcdServer) -> None:
    """And is not cancelled: a task that awaits it goes on."""
    async with (
        relay(etcd_server.members[0].port) as wire,
        etcd_store(f"etcd://127.0.0.1:{wire.port}/closing", {"metadata.request.timeout.ms": "60000"}) as store,
    ):
        lease = await store.lease(60_000)
        wire.drops_answers = True
        waiting: list[asyncio.Future[Any]] = []
        for asked in (store.commit(Txn(put={"/a": b"0"})), store.read("/"), lease.renew()):
            wire.answers_dropped.clear()
            waiting.append(asyncio.ensure_future(asked))
            await wire.answers_dropped.wait()
        await store.close()
        for answer in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(answer, StoreClosed)


async def test_a_caller_that_is_cancelled_is_cancelled(etcd_server: EtcdServer) -> None:
    async with (
        relay(etcd_server.members[0].port) as wire,
        etcd_store(f"etcd://127.0.0.1:{wire.port}/cancelled", {"metadata.request.timeout.ms": "60000"}) as store,
    ):
        lease = await store.lease(60_000)
        wire.drops_answers = True
        for asked in (store.commit(Txn(put={"/a": b"0"})), store.read("/"), lease.renew()):
            waiting = asyncio.ensure_future(asked)
            wire.answers_dropped.clear()
            await wire.answers_dropped.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting


class ScriptedMembers(Members):
    """One member, of whose answers each comes from a list; the last one again and again."""

    def __init__(self, answers: list[bytes | CallFailed]) -> None:
        self.asked_count = 0
        self._answers = answers

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "h:1"

    async def connected(self, deadline_ms: float) -> Member:
        member = Mock(spec=Member)
        member.ask = self._ask
        return member

    def failed(self, member: Member) -> None:
        del member

    async def _ask(self, *_: object) -> bytes:
        answer = self._answers[min(self.asked_count, len(self._answers) - 1)]
        self.asked_count += 1
        if isinstance(answer, CallFailed):
            raise answer
        return answer


async def test_a_member_without_a_leader_has_not_looked_at_the_request() -> None:
    """So it may be sent again; what failed in any other way may not."""
    no_leader = CallFailed("UNAVAILABLE", "etcdserver: no leader")
    cases: list[tuple[list[bytes | CallFailed], type[OSError] | None, int]] = [
        ([no_leader, no_leader, b"answer"], None, 3),
        ([no_leader], Unreachable, 2),
        ([no_leader, CallFailed("UNAVAILABLE", "etcdserver: leader changed"), b"answer"], Unknown, 2),
        ([CallFailed("UNKNOWN", "etcdserver: no leader?"), b"answer"], Unknown, 1),
    ]
    for answers, expected, asked_at_least in cases:
        members = ScriptedMembers(answers)
        client = Client(members, None, Environment(), 300.0)
        if expected is None:
            assert await client.once(TXN, b"") == b"answer"
        else:
            with pytest.raises(expected):
                await client.once(TXN, b"")
        assert members.asked_count >= asked_at_least
        assert expected is Unreachable or members.asked_count == asked_at_least


# -- wrong addresses --------------------------------------------------------------------------------------------------


async def test_an_address_where_nobody_is_is_said_in_one_sentence() -> None:
    (port,) = free_ports(1)
    async with etcd_store(f"etcd://127.0.0.1:{port}/x", QUICK) as store:
        for asked in (store.read("/"), store.commit(Txn(put={"/a": b""})), store.lease(1000)):
            with pytest.raises(Unreachable) as caught:
                await asked
            text = str(caught.value)
            assert text.startswith(f"no member of etcd (127.0.0.1:{port}) could be reached in time: ")
            assert "Connection refused" in text


async def test_a_name_that_does_not_exist_is_said() -> None:
    async with etcd_store("etcd://no-such-host.invalid:2379/x", QUICK) as store:
        with pytest.raises(Unreachable, match=r"no member of etcd \(no-such-host.invalid:2379\) could be reached"):
            await store.read("/")


async def test_a_server_that_is_no_etcd_is_said() -> None:
    """It answers everything with a line of its own."""

    greetings: list[asyncio.Task[None]] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.org ESMTP\r\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()

    def greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greetings.append(asyncio.ensure_future(greet(reader, writer)))

    server = await asyncio.start_server(greeted, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with etcd_store(f"etcd://127.0.0.1:{port}/x", QUICK) as store:
        with pytest.raises(Unreachable, match="could be reached in time: "):
            await store.read("/")
    server.close()
    await server.wait_closed()
    await asyncio.gather(*greetings, return_exceptions=True)  # some were reset


# -- users ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded() -> Iterator[EtcdServer]:
    """An etcd with users: `broker` may use /ours, and root everything."""
    with EtcdServer("--bcrypt-cost", "4") as server:
        for user, password in (("root", "r"), ("broker", "b")):
            server.ctl("user", "add", f"{user}:{password}")
        server.ctl("role", "add", "ours")
        server.ctl("role", "grant-permission", "ours", "--prefix=true", "readwrite", "/ours/")
        server.ctl("user", "grant-role", "broker", "ours")
        server.ctl("user", "grant-role", "root", "root")
        server.ctl("auth", "enable")
        yield server


def user(name: str, password: str) -> dict[str, str]:
    return {"metadata.etcd.username": name, "metadata.etcd.password": password}


async def test_a_user_may_use_the_prefix_and_a_token_that_ended_is_renewed(guarded: EtcdServer) -> None:
    """A member that was restarted knows none of its old tokens: requests, leases and watches go on with another."""
    async with etcd_store(guarded.address("/ours"), user("broker", "b")) as store:
        lease = await store.lease(60_000)
        revision = await store.commit(Txn(put={"/a": b"1"}, lease=lease))
        assert list((await store.read("/")).entries) == ["/a"]
        async with aclosing(store.watch("/", revision)) as changes:
            for number in (2, 4):
                await asyncio.to_thread(guarded.members[0].kill)
                await asyncio.to_thread(guarded.members[0].start)
                if number == 2:  # nobody but the watch asks for the first of these tokens
                    guarded.ctl("--user", "root:r", "put", "/ours/a", str(number))
                else:
                    await store.commit(Txn(put={"/a": b"%d" % number}, lease=lease))
                async with asyncio.timeout(20):
                    assert [event.value for event in (await told(changes)).events] == [b"%d" % number]
                await lease.renew()
        await lease.revoke()


async def test_a_wrong_password_is_said_in_one_sentence(guarded: EtcdServer) -> None:
    for wrong in (user("broker", "wrong"), user("nobody", "b")):
        async with etcd_store(guarded.address("/ours"), wrong) as store:
            with pytest.raises(
                StoreRefused, match=r"authentication failed.*; check metadata.etcd.username and"
            ) as caught:
                await store.read("/")
            assert "\n" not in str(caught.value)


async def test_who_has_no_user_or_no_permission_is_told(guarded: EtcdServer) -> None:
    async with etcd_store(guarded.address("/ours")) as store:
        with pytest.raises(EtcdRefusal, match="etcd refuses: etcdserver: user name is empty"):
            await store.read("/")
    async with etcd_store(guarded.address("/theirs"), user("broker", "b")) as store:
        for asked in (store.read("/"), store.commit(Txn(put={"/a": b""}))):
            with pytest.raises(EtcdRefusal, match="etcd refuses: etcdserver: permission denied"):
                await asked


async def test_a_watch_without_permission_goes_on_asking_until_it_ends(
    guarded: EtcdServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with etcd_store(guarded.address("/theirs"), user("broker", "b")) as store:
        waiting = asyncio.ensure_future(anext(store.watch("/", 1), None))

        def said() -> int:
            return len([record for record in caplog.records if "permission denied" in record.getMessage()])

        async with asyncio.timeout(20):
            while not said():  # noqa: ASYNC110 - a log tells nobody
                await asyncio.sleep(0.01)  # between two looks
        await asyncio.wait([waiting], timeout=0.3)  # in which it is asked for again, and nothing more is said
        assert not waiting.done()
        await store.close()
        assert await waiting is None
        assert said() == 1


async def test_a_user_is_no_hindrance_where_none_is_asked_for(etcd_server: EtcdServer) -> None:
    async with etcd_store(etcd_server.address(), user("broker", "b")) as store:
        await store.commit(Txn(put={"/a": b"1"}))


# -- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(certificates: Certificates) -> Iterator[EtcdServer]:
    """An etcd that speaks TLS and asks its clients for certificates."""
    with EtcdServer(certificates=(certificates.authority, certificates.server, certificates.server)) as server:
        yield server


def tls(authority: Path, client: Path | None) -> dict[str, str]:
    options = {"metadata.etcd.ca.location": str(authority)}
    if client is not None:
        options |= {"metadata.etcd.certificate.location": str(client), "metadata.etcd.key.location": str(client)}
    return options


async def test_certificates_of_both_sides_are_checked(secured: EtcdServer, certificates: Certificates) -> None:
    async with etcd_store(secured.address(), tls(certificates.authority, certificates.client)) as store:
        revision = await store.commit(Txn(put={"/a": b"1"}))
        assert (await store.read("/")).revision == revision
    strangers = tls(certificates.stranger, certificates.client)
    async with etcd_store(secured.address(), strangers | QUICK) as store:
        with pytest.raises(Unreachable, match=r"(?i)certificate.verify.failed"):
            await store.read("/")
    async with etcd_store(secured.address(), tls(certificates.authority, None) | QUICK) as store:
        with pytest.raises(Unreachable, match="could be reached in time"):
            await store.read("/")


async def test_a_name_that_is_not_in_the_certificate_is_refused(
    secured: EtcdServer, certificates: Certificates
) -> None:
    """127.0.0.2 leads to the same machine, and is not among the server's names."""
    options = tls(certificates.authority, certificates.client) | QUICK
    async with (
        relay(secured.members[0].port, host="127.0.0.2") as wire,
        etcd_store(f"etcd://127.0.0.2:{wire.port}/x", options) as store,
    ):
        with pytest.raises(Unreachable, match="could be reached in time"):
            await store.read("/")
    async with (
        relay(secured.members[0].port) as wire,
        etcd_store(f"etcd://localhost:{wire.port}/x", options) as store,
    ):
        await store.read("/")


async def test_plain_speech_to_a_member_that_speaks_tls_is_said(secured: EtcdServer) -> None:
    async with etcd_store(secured.address(), QUICK) as store:
        with pytest.raises(Unreachable, match="could be reached in time"):
            await store.read("/")
