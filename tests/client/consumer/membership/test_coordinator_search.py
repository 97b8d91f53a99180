"""When a coordinator is asked for: not twice at a time, and with backoff after failures and vain finds."""

from math import inf

from odradek.client.consumer.membership.coordinator_search import CoordinatorSearch
from odradek.client.consumer.membership.requests import FindCoordinator
from odradek.client.network.backoff import Backoff


def search() -> CoordinatorSearch:
    return CoordinatorSearch("billing", Backoff(100, 1_000, lambda: 0.5))


def test_it_is_asked_for_at_once_and_one_question_at_a_time() -> None:
    found = search()
    assert found.due_ms == -inf
    request = found.ask()
    assert request.group_id == "billing" and found.due_ms == inf
    assert found.is_asked(request) and not found.is_asked(FindCoordinator("billing"))


def test_failures_are_followed_by_longer_waits() -> None:
    found = search()
    for wait_ms in (100, 200, 400, 800, 1_000, 1_000):
        found.ask()
        found.failed(5)
        assert round(found.due_ms) == 5 + wait_ms


def test_one_that_is_found_again_and_again_in_vain_is_asked_for_with_backoff() -> None:
    found = search()
    for wait_ms in (100, 200, 400):
        found.ask()
        found.found(7)
        assert found.node_id == 7 and found.due_ms == inf
        found.lost(5)
        assert found.node_id is None and found.due_ms == 5 + wait_ms
    found.ask()
    found.found(7)
    found.proved()
    found.lost(5)
    assert found.due_ms == 105


def test_losing_it_twice_waits_once() -> None:
    found = search()
    found.ask()
    found.found(7)
    found.lost(5)
    found.lost(50)
    assert found.due_ms == 105
