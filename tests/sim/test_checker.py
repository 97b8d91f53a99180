"""The checker itself: histories made by hand, bad ones and good ones that look bad; and, under Hypothesis, histories of
a cluster that keeps its promises, which it has nothing to say of until one promise is broken in one place.
"""

import random
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from odradek.testing.sim.checking.checker import check
from odradek.testing.sim.checking.finding import Anomaly
from odradek.testing.sim.checking.history import History
from tests.sim.bad_histories import BAD as BAD_OF_CLIENTS
from tests.sim.good_histories import GOOD as GOOD_OF_CLIENTS
from tests.sim.group_histories import BAD_GROUPS, GOOD_GROUPS
from tests.sim.model_cluster import Model
from tests.sim.mutations import OPERATORS, Operator
from tests.sim.operator_histories import BAD_OPERATIONS, GOOD_OPERATIONS
from tests.sim.stories import Story
from tests.sim.transaction_histories import BAD_TRANSACTIONS, GOOD_TRANSACTIONS

BAD = BAD_OF_CLIENTS | BAD_OPERATIONS | BAD_GROUPS | BAD_TRANSACTIONS
GOOD = GOOD_OF_CLIENTS | GOOD_OPERATIONS | GOOD_GROUPS | GOOD_TRANSACTIONS
EVENTS = 100_000
ELSEWHERE = {
    Anomaly.READABLE_LOST,
    Anomaly.REPLICAS_DIFFER,
    Anomaly.APPENDED_BELOW_MINIMUM,
    Anomaly.OTHER_EPOCH,
    Anomaly.NOT_IN_FORCE,
}
"""Found by looking at replicas: test_replica_logs.py, test_replica_watch.py."""
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("name", BAD)
def test_what_no_cluster_may_do_is_found(name: str) -> None:
    make, expected = BAD[name]
    verdict = make().check()
    assert verdict.kinds == expected, str(verdict)


@pytest.mark.parametrize("name", GOOD)
def test_what_a_cluster_may_do_is_not_found(name: str) -> None:
    GOOD[name]().check().check()


def test_each_anomaly_has_two_bad_histories() -> None:
    counts = {anomaly: sum(anomaly in expected for _, expected in BAD.values()) for anomaly in Anomaly}
    assert {anomaly for anomaly, count in counts.items() if count < 2} == ELSEWHERE


@pytest.mark.parametrize("name", BAD)
def test_a_finding_names_the_record_and_shows_its_events_in_time_order(name: str) -> None:
    story = BAD[name][0]()
    known = [*story.history, *story.cluster]
    for finding in story.check().findings:
        text = str(finding)
        assert f"{finding.topic}-{finding.partition}" in text
        assert finding.anomaly.value in text
        assert finding.offset is None or f"offset {finding.offset}" in text
        assert finding.events
        times = [event.at_ms for _, event in finding.events]
        assert times == sorted(times)
        for index, event in finding.events:
            assert event in known
            assert index < 0 or story.history.records[index] is event
            assert f"{event.at_ms:.3f} ms" in text


def test_what_was_promised_to_nobody_is_counted_with_its_excuse() -> None:
    verdict = GOOD["acks=1, lost with its leader"]().check()
    assert verdict.counts() == {"inconsistent offset, acks=1": 1, "lost write, acks=1": 1}
    verdict = GOOD["a repeated request without idempotence"]().check()
    assert verdict.counts() == {"duplicate, not idempotent": 1}


def test_each_turn_of_an_offset_is_a_finding() -> None:
    story = Story().sent(1).sent(2, producer="q")
    for reader, value in enumerate((1, 2, 2, 1, 1)):
        story.polled(0, (0, value), client=f"r{reader}")
    findings = story.check().findings
    assert [each.text for each in findings] == ["value 1 and then value 2", "value 2 and then value 1"]
    assert [index for index, _ in findings[0].events] == [2, 3, 4]


def test_a_verdict_tells_what_was_found_and_counts_what_it_does_not_show() -> None:
    story = Story().sent(*range(20)).polled(0, *((offset, offset + 100) for offset in range(20)))
    verdict = story.check()
    assert not verdict.is_content
    with pytest.raises(AssertionError, match=r"20 findings(?s:.*)nobody sent value 100(?s:.*)20 of phantom in all"):
        verdict.check()
    assert verdict.counts() == {"phantom": 20}
    text = str(verdict)
    assert text.count("nobody sent") == 5
    assert ">(0, 100)< (1, 101) (2, 102) ..." in text
    assert "from 0: ... (1, 101) (2, 102) >(3, 103)< (4, 104) (5, 105) ..." in text


# -- by chance --------------------------------------------------------------------------------------------------------


@given(seed=seeds, step_count=st.integers(0, 300), may_be_unclean=st.booleans())
def test_a_cluster_that_keeps_its_promises_is_content(seed: int, step_count: int, may_be_unclean: bool) -> None:
    Model(random.Random(seed), may_be_unclean).run(step_count).check().check()


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
@settings(max_examples=50)
@given(seed=seeds)
def test_a_promise_that_is_broken_in_one_place_is_found(operator: Operator, seed: int) -> None:
    rng = random.Random(seed)
    story = Model(rng, may_be_unclean=False).run(200)
    records = list(story.history)
    assume(operator(records, rng))
    verdict = check(records, story.cluster, story.rules)
    assert verdict.kinds & OPERATORS[operator], f"{verdict.counts()}\n{verdict}"


def test_a_hundred_thousand_events_take_about_a_second() -> None:
    story = Model(random.Random(1), may_be_unclean=False).run(EVENTS)
    assert len(story.history) > EVENTS * 0.7
    started = time.process_time()
    verdict = check(story.history, story.cluster, story.rules)
    seconds = time.process_time() - started
    verdict.check()
    print(f"{len(story.history)} events in {seconds:.2f} s")  # noqa: T201 - the figure is what is wanted
    assert seconds < 5.0, "five times what it should take: this may be a slow machine"


def test_a_history_that_went_through_json_is_judged_alike() -> None:
    story = Model(random.Random(2)).run(300)
    again = check(History.from_json(story.history.to_json()), story.cluster, story.rules)
    assert again.counts() == story.check().counts()
