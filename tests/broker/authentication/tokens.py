"""An issuer of tokens, for tests: its keys, as it publishes them, what it signs, and what an attacker makes of both."""

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

EC_OF: dict[str, ec.EllipticCurve] = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}


class Key:
    """One key of the issuer."""

    def __init__(self, algorithm: str, kid: str | None, *, bits: int = 2048) -> None:
        self.algorithm = algorithm
        self.kid = kid
        self.private: Any
        if algorithm in EC_OF:
            self.private = ec.generate_private_key(EC_OF[algorithm])
        elif algorithm == "EdDSA":
            self.private = ed25519.Ed25519PrivateKey.generate()
        else:
            self.private = rsa.generate_private_key(65537, bits)

    def described(self, **more: object) -> dict[str, Any]:
        """As a JWKS has it."""
        algorithm: Any = jwt.get_algorithm_by_name(self.algorithm)
        found: dict[str, Any] = json.loads(algorithm.to_jwk(self.private.public_key()))
        found.pop("key_ops", None)
        return found | ({} if self.kid is None else {"kid": self.kid}) | more

    def signed(self, claims: Mapping[str, object], *, algorithm: str | None = None, **header: object) -> str:
        """A token."""
        own = {} if self.kid is None else {"kid": self.kid}
        payload = json.dumps(dict(claims)).encode()
        return jwt.PyJWS().encode(payload, self.private, algorithm or self.algorithm, {**own, **header})

    @property
    def public_pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        pem: bytes = self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return pem


def jwks(*keys: Mapping[str, object]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def encoded(part: object) -> str:
    data = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def forged(header: Mapping[str, object], claims: Mapping[str, object], secret: bytes | None = None) -> str:
    """A token that nobody has signed; or by HMAC with a key that everybody knows."""
    text = f"{encoded(dict(header))}.{encoded(dict(claims))}"
    signature = b"" if secret is None else hmac.digest(secret, text.encode(), "sha256")
    return f"{text}.{encoded(signature)}"
