"""Signatures of tokens: each algorithm with its key, and every way to make another key, or none, do."""

import json
from collections.abc import Callable
from typing import Any

import jwt
import pytest

from odradek.broker.authentication import token_signatures
from odradek.broker.authentication.token_claims import TokenRefused
from odradek.broker.authentication.token_signatures import (
    INSTALL,
    KID_LENGTH_MAX,
    TRIED_MAX,
    MalformedJwks,
    UnknownKey,
    read_jwks,
    require_library,
    verified_payload,
)
from tests.broker.authentication.tokens import Key, encoded, forged, jwks

CLAIMS = {"sub": "alice", "exp": 2_000_000_000}
RSA = Key("RS256", "rsa")
CURVE = Key("ES256", "curve")
KEYS = read_jwks(jwks(RSA.described(), CURVE.described()))


@pytest.mark.parametrize(
    "algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
)
@pytest.mark.parametrize("kid", ["one", None])
def test_each_algorithm_with_its_own_kind_of_key(algorithm: str, kid: str | None) -> None:
    key = Key(algorithm, kid)
    keys = read_jwks(jwks(key.described(), RSA.described()))
    assert json.loads(verified_payload(key.signed(CLAIMS), keys)) == CLAIMS


def test_a_key_that_names_its_algorithm_takes_no_other() -> None:
    keys = read_jwks(jwks(RSA.described(alg="RS512", use="sig")))
    assert verified_payload(RSA.signed(CLAIMS, algorithm="RS512"), keys)
    with pytest.raises(TokenRefused, match="no key of the issuer fits"):
        verified_payload(RSA.signed(CLAIMS), keys)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, 7, ["RS256"]])
@pytest.mark.parametrize("kid", ["rsa", None])
def test_no_signature_counts_for_none(algorithm: object, kid: str | None) -> None:
    header = {"alg": algorithm} | ({} if kid is None else {"kid": kid})
    for token in (forged(header, CLAIMS), forged(header, CLAIMS) + RSA.signed(CLAIMS).rpartition(".")[2]):
        with pytest.raises(TokenRefused):
            verified_payload(token, KEYS)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_public_key_is_no_password(algorithm: str) -> None:
    """RS/HS confusion: signed by HMAC with what the issuer publishes, in each form of it."""
    described = RSA.described()
    for secret in (
        RSA.public_pem,
        RSA.public_pem.strip(),
        json.dumps(described).encode(),
        described["n"].encode(),
        b"",
    ):
        for header in ({"alg": algorithm, "kid": "rsa"}, {"alg": algorithm}):
            with pytest.raises(TokenRefused):
                verified_payload(forged(header, CLAIMS, secret), KEYS)


def test_a_symmetric_key_of_the_issuer_is_not_used() -> None:
    shared = {"kty": "oct", "k": encoded(b"0123456789abcdef0123456789abcdef"), "kid": "shared", "alg": "HS256"}
    keys = read_jwks(jwks(shared, RSA.described()))
    assert [key.kid for key in keys] == ["rsa"]
    with pytest.raises(UnknownKey):
        verified_payload(forged({"alg": "HS256", "kid": "shared"}, CLAIMS, b"0123456789abcdef0123456789abcdef"), keys)


def test_the_key_of_another_does_not_fit() -> None:
    other = Key("RS256", "rsa")
    with pytest.raises(TokenRefused, match="no key of the issuer fits"):
        verified_payload(other.signed(CLAIMS), KEYS)
    with pytest.raises(TokenRefused, match="no key of the issuer fits"):
        verified_payload(CURVE.signed(CLAIMS, kid="rsa"), KEYS)


def test_keys_that_the_token_brings_along_are_not_looked_at() -> None:
    other = Key("RS256", "rsa")
    headers: list[dict[str, Any]] = [
        {"jwk": other.described()},
        {"jku": "https://attacker.example/keys"},
        {"x5u": "file:///etc/passwd"},
        {"x5c": ["MIIB"]},
    ]
    for header in headers:
        with pytest.raises(TokenRefused, match="no key of the issuer fits"):
            verified_payload(other.signed(CLAIMS, **header), KEYS)


@pytest.mark.parametrize(
    "kid", ["../../../dev/null", "/etc/passwd", "file:///dev/null", "rsa'--", "", "RSA", "rsa\0", "x" * KID_LENGTH_MAX]
)
def test_a_kid_is_a_name_and_opens_nothing(kid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a file was opened")

    token = RSA.signed(CLAIMS, kid=kid)
    monkeypatch.setattr("builtins.open", opened)
    with pytest.raises(UnknownKey):
        verified_payload(token, KEYS)


@pytest.mark.parametrize("header", [{"kid": 7}, {"kid": None}, {"kid": ["rsa"]}, {"kid": "x" * (KID_LENGTH_MAX + 1)}])
def test_a_kid_that_is_none_is_refused_and_asked_for_nowhere(header: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused) as caught:
        verified_payload(forged({"alg": "RS256"} | header, CLAIMS), KEYS)
    assert not isinstance(caught.value, UnknownKey)


@pytest.mark.parametrize(
    "header", [{"crit": ["exp"], "exp": 1}, {"crit": []}, {"crit": "b64"}, {"b64": False, "crit": ["b64"]}]
)
def test_what_is_critical_and_not_understood_is_refused(header: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused):
        verified_payload(forged({"alg": "RS256", "kid": "rsa"} | header, CLAIMS), KEYS)


CHANGES: list[Callable[[str], str]] = [
    lambda token: "",
    lambda token: ".",
    lambda token: "..",
    lambda token: token + ".",
    lambda token: token[:-4],
    lambda token: token.rpartition(".")[0],
    lambda token: token.rpartition(".")[0] + ".",
    lambda token: "." + token,
    lambda token: token.replace(".", "..", 1),
    lambda token: (
        token.split(".")[0] + "." + encoded({"sub": "root", "exp": 2_000_000_000}) + "." + token.split(".")[2]
    ),
    lambda token: encoded({"alg": "RS512", "kid": "rsa"}) + token[token.index(".") :],
    lambda token: encoded([1]) + token[token.index(".") :],
    lambda token: encoded(b"[" * 50_000) + token[token.index(".") :],
    lambda token: "é" + token,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_token_that_was_changed_is_refused(change: Callable[[str], str]) -> None:
    with pytest.raises(TokenRefused):
        verified_payload(change(RSA.signed(CLAIMS)), KEYS)


def test_a_very_long_token_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each character costs, and strangers send them."""
    assert verified_payload(RSA.signed(CLAIMS | {"x": "y" * 8_000}), KEYS)
    monkeypatch.setattr("jwt.get_unverified_header", None)
    with pytest.raises(TokenRefused, match="more than 16384 characters"):
        verified_payload(RSA.signed(CLAIMS | {"x": "y" * 16_000}), KEYS)


def test_without_a_kid_few_keys_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = read_jwks(jwks(*(Key("ES256", str(number)).described() for number in range(20))))
    tried: list[object] = []
    decode = jwt.PyJWS.decode_complete

    def counted(*arguments: Any, **more: Any) -> Any:
        tried.append(arguments)
        return decode(*arguments, **more)

    monkeypatch.setattr("jwt.PyJWS.decode_complete", counted)
    with pytest.raises(TokenRefused):
        verified_payload(Key("ES256", None).signed(CLAIMS), keys)
    assert len(tried) == TRIED_MAX


# ------------------------------------------------------------------------------------------------------ the set of keys
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[]}', b"[" * 100_000, b"\xff", b'{"keys":[7,null,{}]}']
)
def test_what_is_no_set_of_keys(data: bytes) -> None:
    with pytest.raises(MalformedJwks):
        read_jwks(data)


def test_keys_that_cannot_be_used_are_left_out() -> None:
    unusable: list[dict[str, Any]] = [
        RSA.described(use="enc"),
        RSA.described(alg="RSA-OAEP"),
        RSA.described(alg="none"),
        RSA.described(n="!!!"),
        RSA.described(n=None),
        Key("RS256", "short", bits=1024).described(),
        CURVE.described(crv="secp256k1"),
        CURVE.described(x="AA"),
        {"kty": "RSA"},
        {"kty": ["RSA"]},
    ]
    assert [key.kid for key in read_jwks(jwks(*unusable, CURVE.described()))] == ["curve"]


def test_of_a_private_key_only_the_public_part_is_made() -> None:
    algorithm: Any = jwt.get_algorithm_by_name("RS256")
    private: dict[str, Any] = json.loads(algorithm.to_jwk(RSA.private))
    assert "d" in private
    (key,) = read_jwks(jwks(private))
    assert "Private" not in type(key.key).__name__
    assert verified_payload(RSA.signed(CLAIMS, kid="x"), (key._replace(kid="x"),))


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    require_library()

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(token_signatures, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'odradek\[security\]'"):
        require_library()
    assert "odradek[security]" in INSTALL
