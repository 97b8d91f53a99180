"""The file with users of PLAIN: what is read, that it is read again, and that a broken one changes nothing."""

import logging

import pytest

from odradek.broker.authentication.password_file import (
    LOOK_MS,
    HashedUsers,
    MalformedPasswordFile,
    PasswordFile,
    parse_password_file,
)
from odradek.broker.authentication.password_hash import Cost, hashed, written
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.runtime.tasks import Tasks
from tests.client.virtual_time import VirtualEnvironment

COST = Cost(14, 1, 1)
ALICE, BOB = (written(hashed(password, b"0123456789abcdef", COST)) for password in ("of alice", "of bob"))
PATH = "users.txt"


def test_a_line_is_a_user() -> None:
    users = parse_password_file(f"# who\n\nalice:{ALICE}\n  # and\nb c:  {BOB}  \r\n", b"salt")
    assert len(users) == 2
    assert written(users.hash_of("alice")) == ALICE
    assert written(users.hash_of("b c")) == BOB


def test_nobody_has_a_hash_of_the_same_cost_that_no_password_has() -> None:
    users = parse_password_file(f"alice:{ALICE}", b"salt")
    nobody = users.hash_of("nobody")
    assert (nobody.cost, nobody.digest) == (COST, bytes(32))
    assert HashedUsers({}, b"salt").hash_of("nobody").cost == Cost()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"alice:{ALICE}\nalice:{BOB}", "line 2 has a user that stands above already"),
        ("geheim", "line 1 is not NAME:HASH"),
        (f":{ALICE}", "line 1 is not NAME:HASH"),
        (f"\nalice:{ALICE}\nbob:geheim", "line 3: it is not of the form"),
        (f"alice:{ALICE}\nbob:{BOB.replace('ln=14', 'ln=15')}", "differ in ln, r or p"),
    ],
)
def test_what_is_wrong_is_said_and_not_quoted(text: str, said: str) -> None:
    with pytest.raises(MalformedPasswordFile, match=said) as caught:
        parse_password_file(text, b"salt")
    assert "geheim" not in str(caught.value)


@pytest.mark.virtual_time
async def test_it_is_read_again_when_it_has_changed(caplog: pytest.LogCaptureFixture) -> None:
    environment, disk = VirtualEnvironment(), MemoryDisk()
    tasks = Tasks(environment.loop)
    disk.write_whole(PATH, f"alice:{ALICE}\n".encode())
    file = PasswordFile(PATH, disk, environment)
    assert len(file.users) == 0
    await file.load()
    first = file.users
    assert len(first) == 1
    keeping = tasks.start(file.keep(), "keep")
    with caplog.at_level(logging.INFO):
        await environment.sleep(2 * LOOK_MS + 1)
        assert file.users is first, "it is the same"
        disk.write_whole(PATH, f"alice:{ALICE}\nbob:{BOB}\n".encode())
        await environment.sleep(LOOK_MS)
        second = file.users
        assert len(second) == 2
        for broken in (b"geheim", b"\xff"):
            disk.write_whole(PATH, broken)
            await environment.sleep(3 * LOOK_MS)
            assert file.users is second
        disk.remove(PATH)
        await environment.sleep(LOOK_MS)
        assert file.users is second
        disk.write_whole(PATH, f"bob:{BOB}\n".encode())
        await environment.sleep(LOOK_MS)
        assert len(file.users) == 1
    lines = [record.getMessage() for record in caplog.records if record.name.endswith("password_file")]
    assert [line.partition(":")[0] for line in lines] == [
        f"{PATH} was read again",
        f"{PATH} cannot be used, and the users known before stay",
        f"{PATH} cannot be used, and the users known before stay",
        f"{PATH} cannot be used, and the users known before stay",
        f"{PATH} was read again",
    ], "a broken one is told once"
    assert "geheim" not in caplog.text
    keeping.cancel()
    await tasks.close()


@pytest.mark.virtual_time
async def test_one_that_cannot_be_read_at_first_is_an_error() -> None:
    environment = VirtualEnvironment()
    with pytest.raises(OSError, match=PATH):
        await PasswordFile(PATH, MemoryDisk(), environment).load()
