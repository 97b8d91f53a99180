"""The connection to one broker, as the client keeps it."""

from tests.client.cluster.links import Open, link


def test_a_connection_is_idle_since_it_was_used_last_unless_something_is_in_flight() -> None:
    assert link(connection=Open(last_used_ms=5)).idle_since_ms() == 5
    assert link(connection=Open(last_used_ms=5, in_flight=1)).idle_since_ms() == float("inf")
    assert link().idle_since_ms() == float("inf")
