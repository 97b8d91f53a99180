"""`odradek consume`: what --from means, where reading begins in a partition, and when it ends."""

import time
from collections.abc import Callable, Generator

import click
import pytest
from click.testing import CliRunner

from odradek.client.admin.config import AdminConfig
from odradek.client.commands.consume import Beginning, From, consume, print_all, start_of
from odradek.client.commands.failures import NO_ANSWER, REFUSED, CommandFailed
from odradek.client.errors.client_errors import ClientError, broker_error
from odradek.client.fetching.fetched import FetchedBatch
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode

P0 = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", Beginning(timestamp=-2)),
        ("latest", Beginning(timestamp=-1)),
        ("0", Beginning(offset=0)),
        ("42", Beginning(offset=42)),
        ("-10", Beginning(offset=-10)),
        ("@1700000000000", Beginning(timestamp=1_700_000_000_000)),
        ("2023-11-14T22:13:20Z", Beginning(timestamp=1_700_000_000_000)),
        ("2023-11-14T23:13:20.5+01:00", Beginning(timestamp=1_700_000_000_500)),
        ("1969-01-01T00:00:00Z", Beginning(timestamp=0)),
    ],
)
def test_every_form_of_from_is_read(text: str, expected: Beginning) -> None:
    assert From().convert(text, None, None) == expected
    assert From().convert(expected, None, None) is expected


@pytest.fixture
def five_and_a_half_hours_east(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The local time is that of India, written so that it needs no table of zones."""
    monkeypatch.setenv("TZ", "IST-05:30")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("five_and_a_half_hours_east")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-11-14", 1_699_900_200_000),
        ("2023-11-15T03:43:20", 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
    ],
)
def test_a_time_without_a_zone_is_local(text: str, expected: int) -> None:
    assert From().convert(text, None, None) == Beginning(timestamp=expected)


@pytest.mark.parametrize("text", ["", "soon", "1.5", "@", "@-1", "--1", "2023-13-01", "9" * 30])
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(click.UsageError, match=r"none of: earliest, latest, 42, -10"):
        From().convert(text, None, None)


@pytest.mark.parametrize(
    ("beginning", "found", "expected", "said"),
    [
        (Beginning(timestamp=-2), 10, 10, ""),
        (Beginning(timestamp=-1), 20, 20, ""),
        (Beginning(timestamp=5), 15, 15, ""),
        (Beginning(timestamp=5), -1, 20, ""),
        (Beginning(timestamp=5), 99, 20, ""),  # written since the ends were asked for
        (Beginning(offset=10), 10, 10, ""),
        (Beginning(offset=20), 10, 20, ""),
        (Beginning(offset=-3), 10, 17, ""),
        (Beginning(offset=-99), 10, 10, ""),
        (Beginning(offset=3), 10, 10, "orders-0 has the offsets 10 to 19: reading begins at 10\n"),
        (Beginning(offset=21), 10, 20, "orders-0 has the offsets 10 to 19: reading begins at 20\n"),
    ],
)
def test_where_reading_begins(
    beginning: Beginning, found: int, expected: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start_of(P0, beginning, 10, 20, found) == expected
    assert capsys.readouterr().err == said


def test_an_empty_partition_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert start_of(P0, Beginning(offset=7), 5, 5, 5) == 5
    assert capsys.readouterr().err == "orders-0 holds no records: reading begins at 5\n"


class Batches:
    """In place of a Fetcher: these batches, and then nothing."""

    def __init__(self, *batches: list[int], ends: bool = True) -> None:
        self.waiting = list(batches)
        self.ends = ends
        self.asked = 0
        self.errors: list[ClientError] = []

    def failing(self) -> list[ClientError]:
        return self.errors

    @property
    def is_finished(self) -> bool:
        return self.ends and not self.waiting

    async def next(self, timeout_ms: float) -> FetchedBatch | None:
        self.asked += 1
        assert self.asked < 100, "it goes on for ever"
        if not self.waiting:
            self.ends = True if self.asked > 10 else self.ends
            return None
        return FetchedBatch("orders", 0, [Record(offset, 0, None, b"") for offset in self.waiting.pop(0)])


async def printed(batches: Batches, count_max: int | None, *, follow: bool = False) -> list[bytes]:
    written: list[bytes] = []

    async def write(data: bytes) -> None:
        written.append(data)

    text: Callable[[int, Record], bytes] = lambda partition, record: b"%d/%d " % (partition, record.offset)  # noqa: E731
    await print_all(batches, write, text, count_max, 1_000, follow=follow)  # type: ignore[arg-type]  # pyright: ignore
    return written


async def test_batches_are_written_as_they_come_until_the_end() -> None:
    assert await printed(Batches([0, 1], [2]), None) == [b"0/0 0/1 ", b"0/2 "]
    assert await printed(Batches(), None) == []


async def test_after_the_wanted_number_nothing_more_is_asked_for() -> None:
    batches = Batches([0, 1], [2, 3], [4])
    assert await printed(batches, 3) == [b"0/0 0/1 ", b"0/2 "]
    assert batches.asked == 2


async def test_records_that_do_not_come_are_an_error_unless_new_ones_are_waited_for() -> None:
    with pytest.raises(CommandFailed, match="No records came for 1 s") as caught:
        await printed(Batches([0], ends=False), None)
    assert caught.value.code == NO_ANSWER
    failing = Batches([0], ends=False)
    failing.errors = [broker_error(ErrorCode.UNKNOWN_SERVER_ERROR, "", "Fetch of orders-0 at offset 3")] * 2
    with pytest.raises(CommandFailed) as caught:
        await printed(failing, None)
    assert str(caught.value) == (
        "No records came for 1 s, and there should be more. Fetch of orders-0 at offset 3 failed with "
        "UNKNOWN_SERVER_ERROR (-1): The broker failed in a way that it did not expect. The reason stands in the "
        "broker's log. So it is with 1 other partition(s)."
    )
    assert caught.value.code == REFUSED
    following = Batches([0], ends=False)
    assert await printed(following, None, follow=True) == [b"0/0 "]
    assert following.asked > 5


def test_settings_of_the_connection_reach_the_connections(admins: list[AdminConfig]) -> None:
    settings = ("security.protocol=SSL", "client_id=me", "isolation.level=read_committed", "default.api.timeout.ms=77")
    arguments = ["t", "-b", "h:9093", *(part for setting in settings for part in ("--set", setting))]
    assert CliRunner().invoke(consume, arguments).exit_code == 1
    [config] = admins
    assert (config.security_protocol, config.client_id, config.default_api_timeout_ms) == ("SSL", "me", 77)


@pytest.mark.parametrize("name", ["client.rack", "client_rack", "acks", "group.id"])
def test_a_setting_that_would_have_no_effect_is_refused(name: str, admins: list[AdminConfig]) -> None:
    done = CliRunner().invoke(consume, ["t", "-b", "h:9093", "--set", f"{name}=1"])
    assert (done.exit_code, admins) == (2, [])
    assert f"fetcher has no setting {name}" in done.output


def test_a_wrong_command_line_is_told() -> None:
    for arguments in (
        (),
        ("t", "--max", "0"),
        ("t", "--partition", "-1"),
        ("t", "--from", "soon"),
        ("t", "--set", "x"),
    ):
        assert CliRunner().invoke(consume, arguments).exit_code == 2
