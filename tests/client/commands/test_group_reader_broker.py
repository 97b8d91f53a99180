"""`odradek consume --group` against our own broker: it begins where the group is, and commits what it has written."""

import json
from typing import Any

import pytest

from odradek.client.commands.consume import Beginning, consume
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.options import Target
from tests.client.group_readers import orders, send

Printed = pytest.CaptureFixture[bytes]
EARLIEST = Beginning(timestamp=-2)


async def consumed(servers: str, **options: Any) -> None:
    run: Any = getattr(consume.callback, "__wrapped__")  # noqa: B009
    target = Target(bootstrap_server=servers, timeout_ms=5_000)
    given: dict[str, Any] = {"beginning": EARLIEST, "count_max": None, "numbers": (), "follow": False, "as_json": True}
    await run(target, "orders", **(given | {"group_id": "billing", "key_separator": None, "settings": ()} | options))


def offsets(capfdbinary: Printed) -> list[int]:
    return sorted(json.loads(line)["offset"] for line in capfdbinary.readouterr().out.splitlines())


async def test_it_goes_on_where_the_group_is_and_ends_at_the_end(capfdbinary: Printed) -> None:
    async with orders(1, 20) as servers:
        await consumed(servers, count_max=7)
        assert offsets(capfdbinary) == list(range(7))
        await consumed(servers)
        assert offsets(capfdbinary) == list(range(7, 20))
        await send(servers, range(3))
        await consumed(servers, settings=(("group.protocol", "consumer"),))
        assert offsets(capfdbinary) == [20, 21, 22]


async def test_options_that_say_otherwise_are_refused() -> None:
    for options in ({"numbers": (1,)}, {"beginning": Beginning(offset=5)}, {"settings": (("group.id", "other"),)}):
        with pytest.raises(CommandFailed):
            await consumed("localhost:1", **options)
