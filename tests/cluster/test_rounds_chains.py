"""Exactly-once chains: numbers go through three topics, copied by kafka-python, librdkafka, Java's
TransactionalMessageCopier and our client, while copiers and brokers are killed, paused and cut off. Each number that
went in is in the committed output once.

Over the kinds, each library copies in each of the two links.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.cluster.chain_faults import ChainFault, cut_off, killed, paused
from tests.cluster.chain_rounds import CHAIN_OPTIONS, SECONDS, ChainStory, chain
from tests.cluster.network_faults import relayed_cluster
from tests.cluster.real_cluster import plain_cluster
from tests.cluster.rounds import IS_SHORT, ROUNDS, not_when_short

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.minutes,
    pytest.mark.timeout(300 + 120 * ROUNDS + 2 * SECONDS),
]

KINDS: Final[dict[str, tuple[ChainFault, tuple[str, str], tuple[str, str]]]] = {
    "SIGKILL": (killed, ("java", "odradek"), ("kafka-python", "librdkafka")),
    "SIGSTOP": (paused, ("kafka-python", "librdkafka"), ("java", "odradek")),
}


@not_when_short
@pytest.mark.parametrize("what", ["any"] if IS_SHORT else KINDS)
def test_each_number_is_copied_exactly_once(what: str, tmp_path: Path) -> None:
    fault, first, second = KINDS[what]
    with (
        plain_cluster(tmp_path, *CHAIN_OPTIONS) as cluster,
        ChainStory(what, cluster, chain(first, second)) as story,
    ):
        story.rounds(fault)


@not_when_short
def test_each_number_is_copied_exactly_once_when_copiers_and_brokers_are_cut_off(tmp_path: Path) -> None:
    links = chain(("odradek", "librdkafka"), ("kafka-python", "java"))
    with (
        relayed_cluster(tmp_path, *CHAIN_OPTIONS) as cluster,
        ChainStory("cut off", cluster, links, bootstrap=cluster.advertised) as story,
    ):
        story.rounds(cut_off)
