"""Which limit counts for whom: Kafka's order, and names of any kind and length."""

from itertools import combinations

import pytest

from odradek.broker.cluster.quotas import EntityQuotas, QuotaEntity, entity_of
from odradek.broker.quotas.limits import NAME_LENGTH_MAX, Limits, Owner

KIND = "producer_byte_rate"
ORDER: list[tuple[dict[str, str | None], Owner]] = [
    ({"user": "alice", "client-id": "app"}, Owner("alice", "app")),
    ({"user": "alice", "client-id": None}, Owner("alice", "app")),
    ({"user": "alice"}, Owner("alice", "")),
    ({"user": None, "client-id": "app"}, Owner("alice", "app")),
    ({"user": None, "client-id": None}, Owner("alice", "app")),
    ({"user": None}, Owner("alice", "")),
    ({"client-id": "app"}, Owner("", "app")),
    ({"client-id": None}, Owner("", "app")),
]
"""What counts for alice's app, the most specific first, and who shares it."""


def limits_of(*entities: dict[str, str | None], kind: str = KIND) -> Limits:
    """The n-th entity has the limit n + 1."""
    quotas: dict[QuotaEntity, EntityQuotas] = {
        entity_of(names): EntityQuotas({kind: number + 1.0}, 1) for number, names in enumerate(entities)
    }
    return Limits(quotas, KIND)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_of_several_that_match_the_most_specific_counts(size: int) -> None:
    for chosen in combinations(range(len(ORDER)), size):
        found = limits_of(*(ORDER[number][0] for number in chosen)).of("alice", "app")
        assert found == (ORDER[chosen[0]][1], 1.0), chosen


def test_what_is_anothers_does_not_count() -> None:
    others = limits_of({"user": "bob"}, {"client-id": "other"}, {"user": "alice", "client-id": "other"}, {"ip": "::1"})
    assert others.of("alice", "app") is None
    assert not limits_of({"ip": None}), "an address has no limit of requests"
    assert not limits_of({"user": "alice"}, kind="consumer_byte_rate"), "nor has another kind"
    assert limits_of({"user": None})


def test_a_limit_of_any_user_is_each_users_own() -> None:
    limits = limits_of({"user": None})
    assert limits.of("alice", "app") == (Owner("alice", ""), 1)
    assert limits.of("bob", "app") == (Owner("bob", ""), 1)


def test_a_user_does_not_get_away_by_other_client_ids() -> None:
    limits = limits_of({"user": "alice"}, {"client-id": None})
    assert {limits.of("alice", f"app-{number}") for number in range(100)} == {(Owner("alice", ""), 1.0)}


def test_who_has_no_client_id_has_the_default_of_client_ids() -> None:
    """In Kafka it has none at all."""
    assert limits_of({"client-id": None}).of("alice", "") == (Owner("", ""), 1)
    assert limits_of({"user": "alice", "client-id": None}).of("alice", "") == (Owner("alice", ""), 1)


def test_names_are_compared_as_they_are() -> None:
    limits = limits_of({"user": "Alice"}, {"user": "älice"})
    assert limits.of("alice", "") is None
    assert limits.of("Alice ", "") is None
    assert limits.of("a\u0308lice", "") is None, "which looks the same"
    assert limits.of("<default>", "") is None
    assert limits.of("älice", "") == (Owner("älice", ""), 2)


def test_long_names_are_kept_short_and_apart() -> None:
    limits = limits_of({"client-id": None}, {"client-id": "x" * 30_000})
    owners: set[Owner] = set()
    for number in range(3):
        found = limits.of("alice", "x" * 30_000 + str(number))
        assert found is not None and found[1] == 1
        owners.add(found[0])
    assert len(owners) == 3
    exactly = limits.of("alice", "x" * 30_000)
    assert exactly is not None and exactly[1] == 2, "it is the whole name that is looked up"
    assert all(len(owner.client_id) <= NAME_LENGTH_MAX for owner in owners)
