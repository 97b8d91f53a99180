"""Signatures of tokens (JWS, RFC 7515), checked by PyJWT with the keys of the issuer (JWKS, RFC 7517).

Which algorithms a key may be used with says the key, never the token: RSA for RS and PS, a curve for its ES, Ed25519
for EdDSA. So `none` fits no key, and neither does HS, by which a public key would be taken for a password. Of a token's
header only `alg` and `kid` are looked at; a `kid` is compared with those of the keys and opens no file, and `jku`,
`jwk` and `x5u` are not read. A token with an unknown `crit` is refused.

PyJWT and cryptography are an extra of the installation, imported when they are used.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, cast

from odradek.broker.authentication.token_claims import TokenRefused

RSA_BITS_MIN: Final = 2048
KEYS_MAX: Final = 100
TRIED_MAX: Final = 8
"""Keys that one token without a `kid` is tried with."""
KID_LENGTH_MAX: Final = 1000
TOKEN_LENGTH_MAX: Final = 16 * 1024
"""A longer one is not looked at: strangers send them, and the library looks at each character."""
INSTALL: Final = "OAUTHBEARER needs the extra odradek[security]: pip install 'odradek[security]'"
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_PUBLIC: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
"""By kind of key, the members that make a public key of it. A private one is not made, even where it is published."""


class MalformedJwks(ValueError):
    """The text is no set of keys, or holds none that can be used."""


class UnknownKey(TokenRefused):
    """The token names a key that the issuer had not published when it was asked last."""


class VerificationKey(NamedTuple):
    """A public key of the issuer."""

    kid: str | None
    algorithms: tuple[str, ...]
    key: Any
    """What PyJWT made of it."""


def require_library() -> None:
    """Raises ImportError, with a sentence that says what to install."""
    try:
        for name in ("cryptography", "jwt"):
            import_module(name)
    except ImportError as error:
        raise ImportError(INSTALL) from error


def read_jwks(data: bytes) -> tuple[VerificationKey, ...]:
    """The keys that can be used; those that cannot are left out. Raises MalformedJwks."""
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        raise MalformedJwks("it is no JSON") from None
    listed = cast("dict[str, object]", found).get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise MalformedJwks('it is no JSON object with a list "keys"')
    keys = [key for each in cast("list[object]", listed)[:KEYS_MAX] if (key := _read_key(each)) is not None]
    if not keys:
        raise MalformedJwks(f"none of its keys is of RSA ({RSA_BITS_MIN} bits or more), P-256, P-384, P-521 or Ed25519")
    return tuple(keys)


def _read_key(described: object) -> VerificationKey | None:
    from jwt import PyJWTError, get_algorithm_by_name

    if not isinstance(described, dict):
        return None
    jwk = cast("dict[str, Any]", described)
    algorithms = _algorithms(jwk)
    if not algorithms:
        return None
    public = {name: jwk.get(name) for name in ("kty", *_PUBLIC[jwk["kty"]])}
    try:
        key = cast(Any, get_algorithm_by_name(algorithms[0])).from_jwk(public)
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    if jwk["kty"] == "RSA" and key.key_size < RSA_BITS_MIN:
        return None
    kid = jwk.get("kid")
    return VerificationKey(kid if isinstance(kid, str) else None, algorithms, key)


def _algorithms(jwk: Mapping[str, Any]) -> tuple[str, ...]:
    """What the key may be used with; empty for one that is for something else."""
    kind, curve, own = jwk.get("kty"), jwk.get("crv"), jwk.get("alg")
    fitting: tuple[str, ...] = ()
    if kind == "RSA":
        fitting = _RSA
    elif kind == "EC" and curve in _CURVES:
        fitting = (_CURVES[curve],)
    elif kind == "OKP" and curve == "Ed25519":
        fitting = ("EdDSA",)
    if jwk.get("use") not in (None, "sig"):
        return ()
    return fitting if own is None else tuple(each for each in fitting if each == own)


def verified_payload(token: str, keys: Sequence[VerificationKey]) -> bytes:
    """The claims of a token that one of these keys has signed. Raises UnknownKey, TokenRefused."""
    from jwt import PyJWS, PyJWTError, get_unverified_header

    if len(token) > TOKEN_LENGTH_MAX:
        raise TokenRefused(f"it has more than {TOKEN_LENGTH_MAX} characters")
    try:
        header = get_unverified_header(token)
    except PyJWTError:
        raise TokenRefused("it is no signed token") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if kid is not None and len(kid) > KID_LENGTH_MAX:
        raise TokenRefused("its kid is too long to be one")
    named = [key for key in keys if kid is None or key.kid == kid]
    if not named:
        raise UnknownKey("the issuer has published no key with its kid")
    for key in [key for key in named if algorithm in key.algorithms][:TRIED_MAX]:
        try:
            verifier = PyJWS(algorithms=key.algorithms)
            return bytes(verifier.decode_complete(token, key.key, algorithms=key.algorithms)["payload"])
        except (PyJWTError, ValueError, TypeError):
            continue
    raise TokenRefused("no key of the issuer fits its alg and its signature")
