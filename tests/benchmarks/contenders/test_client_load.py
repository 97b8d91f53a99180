"""The records of a run: all different, of the sizes wanted, and the same wherever the same load is named."""

import dataclasses
from itertools import islice

import pytest

from benchmarks.contenders.client_load import ClientLoad, index_of

LOAD = ClientLoad("t", count=2000, warm_count=100, value_bytes_min=50, value_bytes_max=150, key_bytes=16)


def test_values_are_distinct_and_their_sizes_lie_all_over_the_range() -> None:
    values = [value for value, _key in LOAD.records()]
    assert len(values) == len(set(values)) == 2100
    assert {len(value) for value in values} == set(range(50, 151))
    assert [index_of(value) for value in values] == list(range(2100))
    assert len({value[8:] for value in values}) == 2100, "not by their index alone"


def test_keys_are_distinct_and_of_one_size_or_none() -> None:
    keys = {key for _value, key in LOAD.records()}
    assert len(keys) == 2100
    assert {len(key) for key in keys if key is not None} == {16}
    assert {key for _value, key in dataclasses.replace(LOAD, key_bytes=0).records()} == {None}


def test_the_same_load_is_the_same_records_in_every_process_and_for_every_topic() -> None:
    assert ClientLoad.from_json(LOAD.to_json()) == LOAD
    assert dataclasses.replace(LOAD, topic="u").records() == LOAD.records()
    assert dataclasses.replace(LOAD, seed=2).records() != LOAD.records()
    assert list(islice(LOAD.iterate(), 30)) == LOAD.records()[:30]


def test_the_warm_up_comes_first_and_nothing_is_left_out() -> None:
    warm, timed = LOAD.split()
    assert (len(warm), len(timed)) == (100, 2000)
    assert warm + timed == LOAD.records()


def test_values_too_small_for_their_index_are_refused() -> None:
    with pytest.raises(AssertionError):
        dataclasses.replace(LOAD, value_bytes_min=7)
