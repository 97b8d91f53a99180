"""What the process of a broker is, beside the broker: its garbage collector leaves alone what the start has made."""

import gc
from collections.abc import Generator

import pytest

from odradek.broker.launch.run_broker import collector_paused


@pytest.fixture(autouse=True)
def thawed() -> Generator[None]:
    yield
    gc.unfreeze()


def test_what_a_start_makes_is_never_walked_over() -> None:
    with collector_paused():
        assert not gc.isenabled()
        made = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(made)
    walked = {id(each) for each in gc.get_objects()}
    assert not any(id(each) in walked for each in made)


def test_a_start_that_fails_leaves_the_collector_running() -> None:
    with pytest.raises(OSError, match="no room"), collector_paused():
        raise OSError("no room")
    assert gc.isenabled()
