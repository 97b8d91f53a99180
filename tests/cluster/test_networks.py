"""Says which instruments disturb networks on this machine, and fails where there is none: tests that were skipped prove
nothing."""

from collections.abc import Callable

import pytest

from tests.cluster import networks
from tests.cluster.networks import instruments
from tests.cluster.relay import Relay


def test_something_can_disturb_a_network(record_property: Callable[[str, object], None]) -> None:
    found = instruments()
    for name, reason in found.items():
        record_property(name, reason or "works")
        print(f"{name}: {reason or 'works'}")  # noqa: T201 - for the report
    assert found["relay"] is None or found["namespaces"] is None, found


def test_an_instrument_that_does_not_work_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(relay: Relay, name: str, host: str, port: int) -> int:
        raise OSError(f"no {name} on {host}:{port} of {relay.pid}")

    monkeypatch.setattr(Relay, "route", refused)
    reason = networks.why_no_relay()
    assert reason is not None
    assert "no target on" in reason
