"""PLAIN: who comes in, what anybody else is told, and that unknown names cost and are told the same as known ones."""

import hmac
from contextlib import suppress

import pytest

from odradek.broker.authentication import password_hash
from odradek.broker.authentication.mechanism import Refused, TooBusy
from odradek.broker.authentication.password_checks import RUNNING_MAX, WAITING_MAX, PasswordChecks
from odradek.broker.authentication.password_file import HashedUsers
from odradek.broker.authentication.password_hash import Cost, hashed
from odradek.broker.authentication.plain import INVALID, OTHER_AUTHORIZATION, PlainExchange, WrittenUsers
from odradek.runtime.tasks import Tasks
from tests.broker.authentication.listeners import plain
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

CHEAP = Cost(1, 1, 1)
OPTIONS = {"username": "broker", "user_alice": "secret", "user_": "anonymous", "user_é,=": "ü", "user_empty": ""}


def exchange(hashes: HashedUsers | None = None) -> PlainExchange:
    environment = VirtualEnvironment()
    checks = PasswordChecks(environment, Tasks(environment.loop))
    return PlainExchange(WrittenUsers(OPTIONS, b"key"), hashes, checks)


def users_of_a_file() -> HashedUsers:
    return HashedUsers(
        {"alice": hashed("of the file", b"salt", CHEAP), "carol": hashed("hers", b"pepper", CHEAP)}, b"x"
    )


@pytest.mark.parametrize(("user", "password"), [("alice", "secret"), ("é,=", "ü")])
@pytest.mark.parametrize("authorization_id", ["", None])
async def test_a_user_with_the_password_comes_in(user: str, password: str, authorization_id: str | None) -> None:
    token = plain(user, password, user if authorization_id is None else "")
    answer = await exchange().respond(token)
    assert (answer.token, answer.authenticated) == (b"", (user, None))


@pytest.mark.parametrize(
    ("token", "told", "user"),
    [
        (plain("alice", "Secret"), INVALID, "alice"),
        (plain("alice", "secre"), INVALID, "alice"),
        (plain("alice", "secret "), INVALID, "alice"),
        (plain("Alice", "secret"), INVALID, "Alice"),
        (plain("nobody", "secret"), INVALID, "nobody"),
        (plain("empty", "x"), INVALID, "empty"),
        (plain("alice", "secret", "bob"), OTHER_AUTHORIZATION, "alice"),
        (plain("", "anonymous"), "Authentication failed: username not specified", ""),
        (plain("alice", ""), "Authentication failed: password not specified", "alice"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1", ""),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2", ""),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4", ""),
        (b"\0" * 1000, "Invalid SASL/PLAIN response: expected 3 tokens, got 4", ""),
        (b"\0alice\0\xff", INVALID, ""),
        (b"\0\xff\0secret", INVALID, ""),
    ],
)
async def test_anybody_else_is_told_as_by_kafka(token: bytes, told: str, user: str) -> None:
    with pytest.raises(Refused) as caught:
        await exchange().respond(token)
    assert (caught.value.told, caught.value.user) == (told, user)
    assert "secret" not in str(caught.value)


async def test_users_of_line_and_file_come_in_by_either_password() -> None:
    for user, password in (("alice", "secret"), ("alice", "of the file"), ("carol", "hers")):
        answer = await exchange(users_of_a_file()).respond(plain(user, password))
        assert answer.authenticated == (user, None)
    with pytest.raises(Refused):
        await exchange(users_of_a_file()).respond(plain("carol", "of the file"))


async def test_each_name_costs_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """One comparison of a keyed hash, and one scrypt of the same cost where there is a file; whoever it is."""
    done: list[tuple[object, ...]] = []
    compare, digest = hmac.compare_digest, vars(password_hash)["_digest"]

    def compared(one: bytes, other: bytes) -> bool:
        done.append(("compare", len(one), len(other)))
        return compare(one, other)

    def digested(password: bytes, salt: bytes, cost: Cost) -> bytes:
        done.append(("scrypt", cost))
        found: bytes = digest(password, salt, cost)
        return found

    monkeypatch.setattr(hmac, "compare_digest", compared)
    monkeypatch.setattr(password_hash, "_digest", digested)
    works: list[list[tuple[object, ...]]] = []
    for user, password in (
        ("alice", "secret"),
        ("alice", "no"),
        ("carol", "hers"),
        ("nobody", "x"),
        ("x" * 5000, "y" * 9),
    ):
        done = []
        running = exchange(users_of_a_file())
        done.clear()
        with suppress(Refused):
            await running.respond(plain(user, password))
        works.append([*done])
    assert works == [works[0]] * len(works)
    assert ("scrypt", CHEAP) in works[0]


async def test_too_many_at_once_are_not_kept_waiting() -> None:
    environment = VirtualEnvironment()
    tasks = Tasks(environment.loop)
    checks = PasswordChecks(environment, tasks)
    waiting = [
        tasks.start(PlainExchange(WrittenUsers({}, b""), users_of_a_file(), checks).respond(plain("a", "b")), "client")
        for _ in range(RUNNING_MAX + WAITING_MAX)
    ]
    await environment.sleep(0)
    with pytest.raises(TooBusy):
        await PlainExchange(WrittenUsers({}, b""), users_of_a_file(), checks).respond(plain("alice", "of the file"))
    for each in waiting:
        with pytest.raises(Refused):
            await each


def test_passwords_are_not_kept_as_they_are() -> None:
    users = WrittenUsers(OPTIONS, b"key")
    assert len(users) == 3
    assert b"secret" not in repr([getattr(users, name) for name in WrittenUsers.__slots__]).encode()
