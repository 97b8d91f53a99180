"""What is told of quotas: who uses what, under labels that are bounded whatever clients call themselves."""

from odradek.broker.cluster.quotas import EntityQuotas, entity_of
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.quota_samples import LABEL_LENGTH_MAX, ROWS, SERIES_MAX, label, quota_samples
from odradek.broker.quotas.client_quotas import MUTATION, Client, ClientQuotas, Kind
from odradek.broker.quotas.connection_quotas import ConnectionLimits, ConnectionQuotas, ListenerLimits
from odradek.broker.quotas.rate import Windows
from odradek.runtime.metric import Metric

WINDOWS = Windows.of_seconds(11, 1)


def of_connections() -> ConnectionQuotas:
    return ConnectionQuotas(lambda: ConnectionLimits(creation_rate=1), lambda _: ListenerLimits(), None, WINDOWS)


def quotas(**limits: float) -> ClientQuotas:
    """Of any client id."""
    quotas = ClientQuotas(WINDOWS, WINDOWS)
    quotas.configure({entity_of({"client-id": None}): EntityQuotas(limits, 1)})
    return quotas


def test_each_kind_has_its_rows() -> None:
    assert set(ROWS) == {kind.value for kind in Kind} | {MUTATION}


def test_who_uses_what_is_told() -> None:
    limited = quotas(producer_byte_rate=100.0, controller_mutation_rate=1.0)
    limited.producer.charge(Client("alice", "a b"), 1_100, 0)
    limited.mutation.charge(Client("alice", ""), 15, 0, is_strict=True)
    told = {(row, labels): value for row, labels, value in quota_samples(limited, of_connections(), 0.0)}
    assert told == {
        (rows.PRODUCE_RATE, ("", "a%20b")): 110,
        (rows.PRODUCE_THROTTLE, ("", "a%20b")): 1_000,
        (rows.MUTATION_TOKENS, ("", "")): -4,
        (rows.MUTATION_THROTTLE, ("", "")): 0,
    }


def test_what_connections_have_waited_is_told_by_listener() -> None:
    connections = of_connections()
    for _ in range(11):
        connections.creation_delay_ms("EXTERNAL", 0)
    assert list(quota_samples(None, connections, 0.0)) == [
        (rows.ACCEPT_THROTTLE, ("EXTERNAL",), 1_000),
        (rows.IP_ACCEPT_THROTTLE, ("EXTERNAL",), 0),
    ]


def test_there_are_only_so_many_series_each_with_its_own_name() -> None:
    limited = quotas(producer_byte_rate=1.0)
    for number in range(3 * SERIES_MAX):
        limited.producer.charge(Client("", f"client-{'ä' * 200}-{number}"), 1, number)
    told = [(row, labels) for row, labels, _ in quota_samples(limited, of_connections(), 1_000.0)]
    assert len(told) == len(set(told)) == 2 * SERIES_MAX
    assert max(len(text) for _, labels in told for text in labels) <= LABEL_LENGTH_MAX


def test_labels_are_sanitised_and_cut() -> None:
    assert label("CN=a,O=b") == "CN%3Da%2CO%3Db"
    assert label('"}\n') == "%22%7D%0A"
    long = label("x" * 1_000)
    assert len(long) == LABEL_LENGTH_MAX
    assert long != label("x" * 1_001)


def test_rows_of_clients_are_by_user_and_client_id() -> None:
    of_clients: list[Metric] = [row for pair in ROWS.values() for row in pair]
    assert {row.labels for row in of_clients} == {("user", "client_id")}
