"""What a topic holds is compared with what was committed, and an open transaction is seen."""

import pytest

from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.servers import Server
from benchmarks.transactions.transaction_topic import require_committed, transaction_topic
from odradek import Producer
from odradek.protocol.errors import ErrorCode, KafkaError


async def test_records_are_counted_without_markers_and_offsets_with_them(transaction_server: Server) -> None:
    with transaction_topic(transaction_server, "counted", 2) as places:
        async with Producer(transaction_server.address, transactional_id="counting") as producer:
            for partition in (0, 1, 1):
                async with producer.transaction() as transaction:
                    await transaction.send_batch("counted", [b"a", b"b"], partition=partition)
        assert require_committed(places, "counted", 6) == 9
        with pytest.raises(LogDiffers, match="holds 6 records, committed were 5"):
            require_committed(places, "counted", 5)


async def test_an_open_transaction_is_not_taken_for_committed(
    transaction_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.load.wire.LEADER_TIMEOUT_S", 0.2)
    with transaction_topic(transaction_server, "open", 1) as places:
        async with (
            Producer(transaction_server.address, transactional_id="opening") as producer,
            producer.transaction() as transaction,
        ):
            await transaction.send_batch("open", [b"a"])
            with pytest.raises(KafkaError) as raised:
                require_committed(places, "open", 1)
    assert raised.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
