"""What a client is charged, and for how long it is to be silent: each kind of quota, alone and shared."""

import pytest

from odradek.broker.cluster.quotas import EntityQuotas, QuotaEntity, entity_of
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.quotas.client_quotas import Client, ClientQuotas, Kind, RateQuota
from odradek.broker.quotas.limits import Owner
from odradek.broker.quotas.rate import INT_MAX, Windows

WINDOWS = Windows.of_seconds(11, 1)
ALICE, BOB = Client("alice", "app"), Client("bob", "app")
Quotas = dict[QuotaEntity, EntityQuotas]


def of_user(name: str | None, **limits: float) -> Quotas:
    return {entity_of({"user": name}): EntityQuotas(limits, 1)}


def rate_quota(kind: Kind, limit: float, windows: Windows = WINDOWS) -> RateQuota:
    quota = RateQuota(kind, windows)
    quota.configure(of_user("alice", **{kind.value: limit}))
    return quota


def test_what_is_too_much_silences_and_another_user_is_not_charged() -> None:
    quota = rate_quota(Kind.PRODUCER, 1_000)
    assert quota.charge(ALICE, 10_000, 0) == 0
    assert quota.charge(ALICE, 500, 0) == 500
    assert quota.silent_until_ms(ALICE) == 500
    assert quota.charge(BOB, 1e9, 0) == 0
    assert quota.silent_until_ms(BOB) == 0


def test_several_clients_of_a_user_share_its_limit() -> None:
    quota = rate_quota(Kind.CONSUMER, 1_000)
    clients = [Client("alice", f"app-{number}") for number in range(20)]
    assert [quota.charge(client, 500, 0) for client in clients] == [0] * 20
    assert quota.charge(Client("alice", "another"), 500, 0) == 500


def test_what_is_taken_back_does_not_count() -> None:
    quota = rate_quota(Kind.CONSUMER, 1_000)
    assert quota.charge(ALICE, 20_000, 0) == 10_000
    quota.note(ALICE, -20_000, 0)
    assert quota.is_unused(ALICE, 0)
    assert quota.charge(ALICE, 10_000, 0) == 0
    assert not quota.is_unused(ALICE, 0)


def test_what_is_noted_is_charged_with_the_next_request() -> None:
    quota = rate_quota(Kind.REQUEST, 50)
    quota.note(ALICE, 520, 0)
    assert quota.charge(ALICE, 0, 0) == 400


def test_time_silences_for_one_window_at_most() -> None:
    assert rate_quota(Kind.REQUEST, 1).charge(ALICE, 1_000, 0) == 1_000
    assert rate_quota(Kind.REQUEST, 1, Windows.of_seconds(11, 3)).charge(ALICE, 1_000, 0) == 3_000
    assert rate_quota(Kind.PRODUCER, 1).charge(ALICE, 1_000, 0) == 990_000, "bytes do for as long as it takes"


def test_so_much_may_be_had_at_once() -> None:
    quota = rate_quota(Kind.CONSUMER, 1_000)
    assert quota.at_once(ALICE) == 10_000
    assert quota.charge(ALICE, quota.at_once(ALICE), 0) == 0
    assert quota.at_once(BOB) == INT_MAX
    assert rate_quota(Kind.CONSUMER, 1e18).at_once(ALICE) == INT_MAX
    assert rate_quota(Kind.CONSUMER, 1_000, Windows.of_seconds(1, 1)).at_once(ALICE) == 0


def test_a_new_limit_counts_at_once_with_what_was_used() -> None:
    quota = rate_quota(Kind.PRODUCER, 1_000)
    assert quota.charge(ALICE, 10_000, 0) == 0
    quota.configure(of_user("alice", producer_byte_rate=500))
    assert quota.charge(ALICE, 0, 0) == 10_000
    quota.configure({})
    assert not quota.is_set
    assert quota.charge(ALICE, 1e9, 0) == 0


@pytest.mark.parametrize("is_strict", [True, False])
def test_changes_are_done_until_something_is_owed(is_strict: bool) -> None:
    quotas = ClientQuotas(WINDOWS, WINDOWS)
    quotas.configure(of_user("alice", controller_mutation_rate=1))
    charge = quotas.mutation.charge
    assert charge(ALICE, 10, 0, is_strict=is_strict) == 0
    if is_strict:
        assert charge(ALICE, 5, 0, is_strict=True) == 0, "who owes nothing may do anything"
        assert charge(ALICE, 5, 0, is_strict=True) == 4_000
        assert charge(ALICE, 5, 0, is_strict=True) == 4_000, "what is refused is not charged"
        assert charge(ALICE, 5, 4_000, is_strict=True) == 0
    else:
        assert charge(ALICE, 5, 0, is_strict=False) == 4_000
        assert charge(ALICE, 5, 0, is_strict=False) == 9_000, "it is done, and charged"
    assert charge(BOB, 1_000, 0, is_strict=is_strict) == 0


def test_what_is_set_decides_whether_anything_is_counted() -> None:
    quotas = ClientQuotas.of(BrokerConfig({"quota.window.num": "3", "controller.quota.window.size.seconds": "2"}))
    assert not quotas.are_set
    quotas.configure({entity_of({"ip": None}): EntityQuotas({"connection_creation_rate": 1.0}, 1)})
    assert not quotas.are_set
    for kind in ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"):
        quotas.configure(of_user(None, **{kind: 10.0}))
        assert quotas.are_set
    assert quotas.mutation.charge(ALICE, 220, 0, is_strict=False) == 0, "11 windows of 2 s"
    assert quotas.mutation.charge(ALICE, 10, 0, is_strict=False) == 1_000


def test_uses_are_told_by_who_shares_a_limit() -> None:
    quotas = ClientQuotas(WINDOWS, WINDOWS)
    quotas.configure(of_user(None, producer_byte_rate=100, controller_mutation_rate=2))
    quotas.producer.charge(ALICE, 1_500, 0)
    quotas.mutation.charge(BOB, 2, 0, is_strict=True)
    [produced] = quotas.producer.uses(10, 0)
    assert produced == ("producer_byte_rate", Owner("alice", ""), 150, 100, 5_000)
    [changed] = quotas.mutation.uses(10, 0)
    assert changed == ("controller_mutation_rate", Owner("bob", ""), 20, 2, 0)
    assert list(quotas.consumer.uses(10, 0)) == []
