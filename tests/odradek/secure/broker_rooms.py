"""Stands in for the rooms of the broker that store users and ACLs: what is written can be told from the keys."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import pytest

from odradek.broker.cluster.store import MetadataStore, Txn
from odradek.secure import first_contents


class Codes(NamedTuple):
    kind: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


def put_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the broker's own, for one test."""

    def binding_of(codes: Codes) -> Codes:
        return codes

    async def add_acls(
        store: MetadataStore,
        bindings: Iterable[Codes],
        guard: Mapping[str, int],
        on_stored: Callable[[list[Codes]], None],
    ) -> None:
        assert not guard
        on_stored([])
        for each in bindings:
            await store.commit(Txn(put={"/acls/" + "|".join(map(str, each)): b"{}"}))

    async def write_first_user(store: MetadataStore, mechanism: str, user: str, password: str, iterations: int) -> None:
        if not password:
            raise ValueError("the password is empty")
        value = f"{password} {iterations}".encode()
        await store.commit(Txn(put={f"/scram/users/{mechanism}/{user}": value}))

    monkeypatch.setattr(first_contents, "AclCodes", Codes)
    monkeypatch.setattr(first_contents, "binding_of", binding_of)
    monkeypatch.setattr(first_contents, "add_acls", add_acls)
    monkeypatch.setattr(first_contents, "write_first_user", write_first_user)
