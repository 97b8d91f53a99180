"""A store on etcd is refused without TLS, and without credentials."""

import pytest

from odradek.secure.etcd_options import etcd_problem

ETCD = {"metadata.store": "etcd://e:2379/kafka"}
CA = {"metadata.etcd.ca.location": "/ca.pem"}
USER = {"metadata.etcd.username": "odradek", "metadata.etcd.password": "secret"}
CERTIFICATE = {"metadata.etcd.certificate.location": "/c.pem", "metadata.etcd.key.location": "/k.pem"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (ETCD, "without TLS"),
        (ETCD | USER, "without TLS"),
        (ETCD | CA, "without credentials"),
        (ETCD | CA | {"metadata.etcd.username": "odradek"}, "without credentials"),
        (ETCD | CA | {"metadata.etcd.certificate.location": "/c.pem"}, "without credentials"),
        (ETCD | CA | USER | {"metadata.etcd.password": ""}, "without credentials"),
    ],
)
def test_an_open_etcd_is_told(options: dict[str, str], why: str) -> None:
    problem = etcd_problem(options)
    assert problem is not None
    assert why in problem
    assert "secret" not in problem


@pytest.mark.parametrize("options", [{}, {"metadata.store": "embedded:"}, ETCD | CA | USER, ETCD | CA | CERTIFICATE])
def test_another_store_and_a_guarded_one_are_not(options: dict[str, str]) -> None:
    assert etcd_problem(options) is None
