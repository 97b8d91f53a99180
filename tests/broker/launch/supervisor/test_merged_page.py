"""Pages of several brokers become one, by family, each sample with its broker."""

from prometheus_client.parser import text_string_to_metric_families

from odradek.broker.launch.supervisor.merged_page import merged

ONE = """\
# HELP a_total What a is.
# TYPE a_total counter
a_total 1.0
# HELP lag_seconds How late.
# TYPE lag_seconds histogram
lag_seconds_bucket{le="1.0"} 2.0
lag_seconds_bucket{le="+Inf"} 3.0
lag_seconds_count 3.0
lag_seconds_sum 4.5
"""
TWO = """\
# HELP a_total What a is.
# TYPE a_total counter
a_total 5.0
# HELP b How many } there are.
# TYPE b gauge
b{topic="t{,\\"}"} 7.0
"""


def test_families_stand_together_and_samples_name_their_broker() -> None:
    page = merged({"1": ONE, "2": TWO})
    assert (
        page
        == """\
# HELP odradek_up Whether the broker answers: 1, or 0.
# TYPE odradek_up gauge
odradek_up{broker="1"} 1
odradek_up{broker="2"} 1
# HELP a_total What a is.
# TYPE a_total counter
a_total{broker="1"} 1.0
a_total{broker="2"} 5.0
# HELP lag_seconds How late.
# TYPE lag_seconds histogram
lag_seconds_bucket{broker="1",le="1.0"} 2.0
lag_seconds_bucket{broker="1",le="+Inf"} 3.0
lag_seconds_count{broker="1"} 3.0
lag_seconds_sum{broker="1"} 4.5
# HELP b How many } there are.
# TYPE b gauge
b{broker="2",topic="t{,\\"}"} 7.0
"""
    )
    families = {family.name: family for family in text_string_to_metric_families(page)}
    assert sorted(families) == ["a", "b", "lag_seconds", "odradek_up"]
    assert families["b"].samples[0].labels == {"broker": "2", "topic": 't{,"}'}


def test_a_broker_that_does_not_answer_is_told_and_takes_nothing_away() -> None:
    page = merged({"1": ONE, "2": None})
    assert 'odradek_up{broker="1"} 1\nodradek_up{broker="2"} 0\n' in page
    assert 'a_total{broker="1"} 1.0\n' in page
    assert merged({"1": None}).count("\n") == 3
