"""Each kind of client names a function that is there."""

from importlib import import_module

import pytest

from tests.cluster.client_process import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_names_a_function(kind: str) -> None:
    module, name = KINDS[kind].split(".")
    assert callable(getattr(import_module(f"tests.cluster.{module}"), name))
