"""Our producer sends whole transactions, or none, and all of its records arrive."""

import pytest

from benchmarks.harness.servers import Server
from benchmarks.load.replies import LoadFailed
from benchmarks.transactions.own_load import TOGETHER, Idiom, OwnLoad, run_own
from benchmarks.transactions.transaction_topic import require_committed, transaction_topic


@pytest.mark.parametrize("is_transactional", [False, True])
@pytest.mark.parametrize("idiom", ["send", "send_batch"])
def test_all_records_arrive(transaction_server: Server, idiom: Idiom, is_transactional: bool) -> None:
    topic = f"own-{idiom}-{is_transactional}"
    with transaction_topic(transaction_server, topic, 2) as places:
        load = OwnLoad(transaction_server.address, topic, idiom, is_transactional, times=2, value_bytes=10)
        assert load.records == 3 * TOGETHER, "one before the clock runs"
        assert run_own(load) > 0
        offsets = require_committed(places, topic, load.records)
        assert (offsets > load.records) == is_transactional, "markers have offsets"


def test_a_send_that_fails_ends_the_run(transaction_server: Server) -> None:
    load = OwnLoad(transaction_server.address, "bad topic!", "send_batch", False, times=1)
    with pytest.raises(LoadFailed):
        run_own(load)
