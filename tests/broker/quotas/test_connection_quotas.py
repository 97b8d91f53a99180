"""How many connections there may be and how fast they may come: by broker, listener and address."""

from collections.abc import Mapping

import pytest

from odradek.broker.cluster.quotas import NO_QUOTAS, EntityQuotas, QuotaEntity, entity_of
from odradek.broker.quotas.connection_quotas import ConnectionLimits, ConnectionQuotas, ListenerLimits
from odradek.broker.quotas.rate import Windows

WINDOWS = Windows.of_seconds(11, 1)
INSIDE, OUTSIDE = "INTERNAL", "EXTERNAL"


Limits = ConnectionLimits


def quotas_of(
    limits: ConnectionLimits, protected: str | None = None, listeners: Mapping[str, ListenerLimits] | None = None
) -> ConnectionQuotas:
    """By default a listener has the limits of the broker."""
    own = ListenerLimits(limits.connections, limits.creation_rate)
    return ConnectionQuotas(lambda: limits, lambda name: (listeners or {}).get(name, own), protected, WINDOWS)


def of_ips(**limits: float) -> dict[QuotaEntity, EntityQuotas]:
    names: dict[str, str | None] = {"default": None}
    return {
        entity_of({"ip": names.get(name, name)}): EntityQuotas({"connection_creation_rate": limit}, 1)
        for name, limit in limits.items()
    }


def test_without_limits_nothing_waits() -> None:
    quotas = quotas_of(Limits())
    for _ in range(1000):
        assert quotas.creation_delay_ms(OUTSIDE, 0) == 0
        assert quotas.ip_delay_ms(OUTSIDE, "192.0.2.1", NO_QUOTAS, 0) == 0
        assert quotas.has_room(OUTSIDE)
        assert quotas.refusal("192.0.2.1") is None
        quotas.came(OUTSIDE, "192.0.2.1")


def test_room_is_counted_by_broker_and_by_listener() -> None:
    quotas = quotas_of(Limits(connections=3), None, {OUTSIDE: ListenerLimits(connections=2)})
    quotas.came(OUTSIDE, "a")
    quotas.came(OUTSIDE, "b")
    assert not quotas.has_room(OUTSIDE), "its own limit"
    assert quotas.has_room(INSIDE)
    quotas.came(INSIDE, "a")
    assert not quotas.has_room(INSIDE), "the broker's"
    quotas.went(OUTSIDE, "a")
    assert quotas.has_room(INSIDE)
    assert quotas.has_room(OUTSIDE)


def test_the_listener_of_brokers_is_left_out_of_the_brokers_limits() -> None:
    """So that clients cannot keep brokers from one another; its own limits count."""
    broker = Limits(connections=1, creation_rate=1)
    own = ListenerLimits(connections=2, creation_rate=2)
    quotas = quotas_of(broker, INSIDE, {INSIDE: own, OUTSIDE: ListenerLimits()})
    quotas.came(OUTSIDE, "client")
    assert not quotas.has_room(OUTSIDE)
    assert quotas.has_room(INSIDE)
    quotas.came(INSIDE, "broker")
    assert quotas.has_too_many, "a client has to go"
    quotas.came(INSIDE, "broker")
    assert not quotas.has_room(INSIDE)
    for _ in range(20):
        assert quotas.creation_delay_ms(INSIDE, 0) == 0
    assert quotas.creation_delay_ms(INSIDE, 0) == 500
    assert quotas.creation_delay_ms(OUTSIDE, 0) == 0, "those of brokers do not count for the broker's rate"
    assert quotas.is_protected(INSIDE)
    assert not quotas.is_protected(OUTSIDE)


def test_who_comes_too_fast_waits_one_window_at_most() -> None:
    quotas = quotas_of(Limits(creation_rate=10))
    delays = [quotas.creation_delay_ms(OUTSIDE, 0) for _ in range(130)]
    assert delays[:100] == [0] * 100
    assert delays[100:103] == [100, 200, 300]
    assert max(delays) == 1_000
    assert quotas.listeners[OUTSIDE].throttled_ms == sum(delays)


def test_a_rate_of_none_at_all_waits_as_well() -> None:
    assert quotas_of(Limits(creation_rate=0)).creation_delay_ms(OUTSIDE, 0) == 1_000


def test_an_address_has_its_own_rate_or_the_default() -> None:
    quotas, set_for = quotas_of(Limits(creation_rate=1_000)), of_ips(default=1, **{"192.0.2.1": 2})
    for address, count in (("192.0.2.1", 20), ("192.0.2.2", 10), ("192.0.2.3", 10)):
        for _ in range(count):
            assert quotas.ip_delay_ms(OUTSIDE, address, set_for, 0) == 0
        assert quotas.ip_delay_ms(OUTSIDE, address, set_for, 0) > 0
    assert quotas.ip_delay_ms(OUTSIDE, "192.0.2.1", of_ips(**{"192.0.2.1": 3}), 0) == 0, "a new limit counts at once"
    assert quotas.ip_delay_ms(OUTSIDE, "192.0.2.2", NO_QUOTAS, 0) == 0


def test_what_its_address_turns_away_is_none_for_the_other_rates() -> None:
    quotas = quotas_of(Limits(creation_rate=2))
    set_for = of_ips(default=1)
    for _ in range(10):
        quotas.creation_delay_ms(OUTSIDE, 0)
        assert quotas.ip_delay_ms(OUTSIDE, "192.0.2.1", set_for, 0) == 0
    for _ in range(500):
        assert quotas.creation_delay_ms(OUTSIDE, 0) == 0
        assert quotas.ip_delay_ms(OUTSIDE, "192.0.2.1", set_for, 0) == 1_000
    assert quotas.listeners[OUTSIDE].ip_throttled_ms == 500_000


@pytest.mark.parametrize(
    ("host", "count"), [("192.0.2.1", 2), ("192.0.2.9", 5), ("::ffff:192.0.2.9", 5), ("2001:db8::1", 1)]
)
def test_an_address_may_have_so_many(host: str, count: int) -> None:
    limits = [Limits(by_ip=2, by_ip_overrides="192.0.2.9:5,[2001:DB8:0::1]:1")]
    quotas = ConnectionQuotas(lambda: limits[0], lambda _: ListenerLimits(), None, WINDOWS)
    for _ in range(count):
        assert quotas.refusal(host) is None
        quotas.came(OUTSIDE, host)
    assert quotas.refusal(host) == f"there are {count} connections from its address already (max.connections.per.ip)"
    assert quotas.refusal("192.0.2.77") is None
    quotas.went(OUTSIDE, host)
    assert quotas.refusal(host) is None
    limits[0] = Limits(by_ip=2, by_ip_overrides=f"{host}:0")
    assert quotas.refusal(host) is not None, "what is changed counts at once"
