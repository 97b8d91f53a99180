"""Each of examples/, and each snippet of docs/producer.md, runs as a program of its own against our broker: what it
prints is right, and what it sent is there."""

import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from textwrap import indent

import pytest
from confluent_kafka import Message

import odradek
from processes.child_process import REPOSITORY
from tests.compat.kit_cluster import KitCluster
from tests.compat.producer_load import read_back
from tests.compat.watermarks import log_ends

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]

EXAMPLES = REPOSITORY / "examples"
PAGE = (REPOSITORY / "docs" / "producer.md").read_text()
ADDRESS = "localhost:9092"
PARTITIONS = 3
OPTIONS = {"num.partitions": str(PARTITIONS)}


@pytest.fixture
def server(tmp_path: Path) -> Generator[KitCluster]:
    """One for each program: what is in it afterwards is what the program sent."""
    with KitCluster(1, tmp_path / "data", OPTIONS) as running:
        yield running


def run(*command: str) -> list[str]:
    """The lines that a program printed. It must end well, and with no word on standard error, warnings neither."""
    program = [sys.executable, "-W", "default", *command]
    done = subprocess.run(program, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-4000:]
    return done.stdout.splitlines()


def run_example(name: str, server: KitCluster, *arguments: str) -> list[str]:
    return run(str(EXAMPLES / f"{name}.py"), server.bootstrap, *arguments)


def messages(server: KitCluster, topic: str) -> list[Message]:
    """All of a topic; those of one partition in their order."""
    return list(read_back(server.bootstrap, topic, log_ends(server.bootstrap, topic, range(PARTITIONS))))


def values(server: KitCluster, topic: str) -> list[bytes | None]:
    return [message.value() for message in messages(server, topic)]


# --------------------------------------------------------------------------------------------------------- examples/
def test_every_example_has_a_test() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        name.removeprefix("test_example_") for name in globals() if name.startswith("test_example_")
    }


def test_example_fire_and_forget(server: KitCluster) -> None:
    assert run_example("fire_and_forget", server) == ["10000 clicks delivered"]
    assert Counter(values(server, "clicks")) == Counter(b"click %d" % number for number in range(10_000))


def test_example_awaited(server: KitCluster) -> None:
    *lines, last = run_example("awaited", server)
    [partition] = {message.partition() for message in messages(server, "orders")}
    assert [*lines, last] == [f"order {number} is at orders-{partition}, offset {number}" for number in range(10)]
    assert values(server, "orders") == [b"order %d" % number for number in range(10)]


def test_example_callbacks(server: KitCluster) -> None:
    assert run_example("callbacks", server) == [f"1000 clicks delivered, to {PARTITIONS} partition(s)"]
    found = Counter((each.key(), each.value()) for each in messages(server, "clicks"))
    assert found == Counter((b"user %d" % (number % 50), b"click %d" % number) for number in range(1_000))


def test_example_bulk(server: KitCluster) -> None:
    [line] = run_example("bulk", server)
    told = re.fullmatch(r"100000 readings delivered; the last one is at readings-(\d), offset (\d+)", line)
    assert told is not None
    found = messages(server, "readings")
    assert Counter(json.loads(each.value() or b"")["reading"] for each in found) == Counter(range(100_000))
    [last] = [each for each in found if (each.partition(), each.offset()) == (int(told[1]), int(told[2]))]
    assert last.value() == b'{"sensor": 99, "reading": 99999}'


def test_example_error_handling(server: KitCluster) -> None:
    refused, delivered, *bulk = run_example("error_handling", server)
    too_large = r"a record of 200\d\d\d bytes for orders .* max_request_size of 100000 bytes.*"
    assert re.fullmatch(f"refused: {too_large}", refused)
    assert delivered == "delivered at offset 0"
    assert re.fullmatch(f"record 1 of the bulk: {too_large}", bulk[0])
    assert re.fullmatch(r"record 2 of the bulk: delivered at offset \d+", bulk[1])
    assert len(bulk) == 2
    orders = [b"order %d" % number for number in range(1_000)]
    assert Counter(values(server, "orders")) == Counter([b"an order", *orders, b"small", b"small again"])


def test_example_interceptors(server: KitCluster) -> None:
    assert run_example("interceptors", server) == ["10 orders sent, 10 acknowledged"]
    found = messages(server, "orders")
    assert [json.loads(each.value() or b"") for each in found] == [
        {"number": number, "item": "Odradek"} for number in range(10)
    ]
    assert {each.key() for each in found} == {b"customer-1"}
    traces = {tuple(each.headers() or ()) for each in found}
    assert len(traces) == 10
    assert {name for headers in traces for name, _ in headers} == {"trace-id"}


@pytest.mark.only_in_compat
@pytest.mark.parametrize(
    "settings",
    [
        (),
        pytest.param(("classic", "one"), marks=pytest.mark.only_in_compat),
        pytest.param(("consumer",), marks=pytest.mark.only_in_compat),
        pytest.param(("consumer", "one"), marks=pytest.mark.only_in_compat),
    ],
)
def test_example_exactly_once(tmp_path: Path, settings: tuple[str, ...]) -> None:
    with KitCluster(1, tmp_path / "data", OPTIONS) as server:
        for runs in (1, 2):
            lines = run_example("exactly_once", server, *settings)
            told = [re.fullmatch(r"(\d+) orders paid", line) for line in lines]
            assert sum(int(each[1]) for each in told if each is not None) == 1_000, lines
            found = Counter(asyncio.run(committed(server, "payments")))
            assert found == {b"paid: order %d" % number: runs for number in range(1_000)}


# ------------------------------------------------------------------------------------------------- docs/producer.md
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_first_snippet_of_the_page_sends_an_order(server: KitCluster) -> None:
    [line] = run("-c", SNIPPETS[0].replace(ADDRESS, server.bootstrap))
    assert re.fullmatch(r"orders-\d, offset 0", line)
    [order] = messages(server, "orders")
    assert (order.key(), order.value()) == (b"customer-7", b"two coffees")


@pytest.mark.only_in_compat
def test_the_second_snippet_of_the_page_copies_each_order_once(server: KitCluster) -> None:
    sent = [b"order %d" % number for number in range(2_500)]
    asyncio.run(send(server, sent))
    program = SNIPPETS[1].replace(ADDRESS, server.bootstrap)
    for _ in range(2):  # the second run has nothing left to do
        assert run("-c", program) == []
    assert sorted(asyncio.run(committed(server, "payments"))) == sorted(value.upper() for value in sent)


@pytest.mark.parametrize("commit", [True, False])
def test_the_third_snippet_of_the_page_prepares_and_decides(tmp_path: Path, commit: bool) -> None:
    options = OPTIONS | {"transaction.two.phase.commit.enable": "true"}
    with KitCluster(1, tmp_path / "data", options) as server:
        use = f"import asyncio\nprepared = asyncio.run(write([b'tea']))\nasyncio.run(decide(prepared, {commit}))\n"
        assert run("-c", SNIPPETS[2].replace(ADDRESS, server.bootstrap) + use) == []
        assert asyncio.run(committed(server, "payments")) == ([b"tea"] if commit else [])


async def send(server: KitCluster, orders: list[bytes]) -> None:
    async with odradek.Producer(server.bootstrap) as producer:
        await producer.send_batch("orders", orders)


async def committed(server: KitCluster, topic: str) -> list[bytes]:
    """What a reader of committed records sees, until nothing more comes."""
    found: list[bytes] = []
    reader = odradek.Consumer(server.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed")
    async with reader:
        reader.assign(await reader.partitions_for(topic))
        while batch := await reader.get_batch(timeout_ms=1_000):
            found += [record.value for record in batch.records]
    return found


@pytest.mark.parametrize(("index", "linger_ms"), [(3, 20), (4, 5)])
def test_the_other_snippets_of_the_page_make_a_producer_that_works(
    server: KitCluster, index: int, linger_ms: int
) -> None:
    """Their reader would go on like this."""
    assert len(SNIPPETS) == 5
    assert ADDRESS in SNIPPETS[index]
    use = 'async with producer:\n    print(await (await producer.send("orders", b"tea", timestamp_ms=1)))\n'
    use += "print(producer.config.linger_ms)\n"
    whole = indent(SNIPPETS[index].replace(ADDRESS, server.bootstrap) + use, "    ")
    ack, linger = run("-c", f"import asyncio\n\nasync def main():\n{whole}\nasyncio.run(main())\n")
    assert re.fullmatch(r"Ack\(topic='orders', partition=\d, offset=0, timestamp_ms=1\)", ack)
    assert linger == str(linger_ms)
    assert values(server, "orders") == [b"tea"]


def test_what_the_page_names_can_be_imported_from_odradek() -> None:
    table = PAGE.partition("| error | when | then |")[2].partition("\n\n")[0]
    errors = [name for row in table.split("\n")[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert len(errors) > 8
    assert [name for name in (*errors, "ClientError", "Delivery", "BulkAcks") if not hasattr(odradek, name)] == []


def test_links_of_the_page_lead_to_files() -> None:
    targets = sorted(set(re.findall(r"\]\(([^)#:]+)\)", PAGE)))
    assert targets
    assert [target for target in targets if not (REPOSITORY / "docs" / target).exists()] == []
