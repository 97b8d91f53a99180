"""The same raw requests sent to Apache Kafka 4.3.1 and to `odradek serve`: the answers are equal, or listed here.

The questions are in `questions_of_data.py` and `questions_of_admin.py`. A difference stands in `DIFFERENT` with both
answers and the reason; one that is none any more, or has become another one, fails.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.apache_kafka import ApacheKafka
from tests.compat import questions_of_admin, questions_of_data
from tests.compat.peer import Peer
from tests.compat.questions import QUESTIONS, Answer
from tests.odradek_broker import OdradekBroker

pytestmark = [pytest.mark.compat, pytest.mark.java, pytest.mark.slow]

ASKED_IN = (questions_of_admin, questions_of_data)
"""Importing them fills `QUESTIONS`."""


class Difference(NamedTuple):
    """What Kafka answers, what we answer, and why."""

    theirs: Answer
    ours: Answer
    reason: str


DIFFERENT: dict[str, Difference] = {}


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    with ApacheKafka(properties={"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    data_dir = tmp_path_factory.mktemp("answers") / "data"
    with OdradekBroker(data_dir, "--node-id", "1", "--set", "auto.create.topics.enable=false") as running:
        yield running


def answer(broker: ApacheKafka | OdradekBroker, name: str) -> Answer:
    """Each question has a connection and a topic of its own."""
    topic = name.replace("_", "-")
    with Peer(broker.host, broker.port) as peer:
        peer.create_topic(topic)
        return QUESTIONS[name](peer, topic)


@pytest.mark.parametrize("name", QUESTIONS)
def test_both_answer_alike(kafka: ApacheKafka, odradek: OdradekBroker, name: str) -> None:
    theirs, ours = answer(kafka, name), answer(odradek, name)
    if name in DIFFERENT:
        assert (theirs, ours) == DIFFERENT[name][:2]
        assert theirs != ours
    else:
        assert ours == theirs


def test_differences_belong_to_questions_and_have_reasons() -> None:
    assert [name for name in DIFFERENT if name not in QUESTIONS] == []
    assert [name for name, difference in DIFFERENT.items() if not difference.reason] == []
