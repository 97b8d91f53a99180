"""Quotas as values: whose they are, and what cannot be asked for."""

import pytest

from odradek.client.admin.quotas import QuotaComponent, QuotaEntity, QuotaFilter, QuotaMatch, problem_of


def test_an_entity_has_its_names_in_the_order_of_the_types() -> None:
    entity = QuotaEntity.of(client_id="c", user="alice")
    assert entity == QuotaEntity.from_names({"client-id": "c", "user": "alice"})
    assert entity.parts == (("user", "alice"), ("client-id", "c"))
    assert str(entity) == "user alice client-id c"
    assert str(QuotaEntity.of(user=None)) == "user <default>"
    assert QuotaEntity.of(user=None) != QuotaEntity.of(client_id=None)


def test_a_type_of_a_newer_broker_stands_behind_those_that_are_known() -> None:
    assert QuotaEntity.from_names({"galaxy": None, "ip": "10.0.0.7"}).parts == (("ip", "10.0.0.7"), ("galaxy", None))


def test_the_exact_filter_names_each_part_and_no_other() -> None:
    assert QuotaFilter.exactly(QuotaEntity.of(user="alice", client_id=None)) == QuotaFilter(
        (QuotaComponent("user", QuotaMatch.NAME, "alice"), QuotaComponent("client-id", QuotaMatch.DEFAULT)),
        is_strict=True,
    )
    assert QuotaComponent.any_of("ip") == QuotaComponent("ip", QuotaMatch.ANY, None)


@pytest.mark.parametrize(
    ("entity", "quotas", "problem"),
    [
        (QuotaEntity(()), {"producer_byte_rate": 1.0}, "names no user"),
        (QuotaEntity.of(user=""), {"producer_byte_rate": 1.0}, "empty"),
        (QuotaEntity.of(user="a"), {"": 1.0}, "name of a quota is empty"),
        (QuotaEntity.of(user="a"), {"producer_byte_rate": "1"}, "producer_byte_rate is no number"),
        (QuotaEntity.of(user="a"), {"producer_byte_rate": True}, "producer_byte_rate is no number"),
    ],
)
def test_what_cannot_be_asked_for_is_told(entity: QuotaEntity, quotas: dict[str, object], problem: str) -> None:
    assert problem in (problem_of(entity, quotas.items()) or "")


def test_numbers_and_removals_can_be_asked_for() -> None:
    quotas: dict[str, object] = {"producer_byte_rate": 1, "consumer_byte_rate": 1.5, "request_percentage": None}
    assert problem_of(QuotaEntity.of(ip=None), quotas.items()) is None
