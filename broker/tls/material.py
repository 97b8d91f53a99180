"""The certificates and keys of one listener: from the bytes of files and the values of options to what contexts need.

PEM is read here; PKCS12 by `cryptography`, which is imported only then. Files are read once, so that a key and its
certificate are of one moment, and their bytes are kept: what has changed is known by comparing them.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from odradek.broker.tls.certificate import Certificate, in_order, read_certificate
from odradek.broker.tls.der import DerError
from odradek.broker.tls.pem import PrivateKey, read_certificates, read_private_key
from odradek.broker.tls.tls_error import TlsError
from odradek.broker.tls.tls_settings import PEM, Store, TlsSettings

Files = Mapping[str, bytes]
"""What the files held, by their paths."""


class KeyWithChain(NamedTuple):
    """A private key, the password under which it is encrypted, and its certificate with those that issued it."""

    key: PrivateKey
    password: str | None
    chain: tuple[Certificate, ...]

    def __repr__(self) -> str:
        return f"<KeyWithChain of {self.chain[0].name!r}>"


class Material(NamedTuple):
    """What a listener has to show, and whom it trusts; None: no truststore is given."""

    own: KeyWithChain
    trusted: tuple[Certificate, ...] | None


def read_files(settings: TlsSettings, read: Callable[[str], bytes]) -> Files:
    """The files that the settings name. Raises TlsError."""
    files: dict[str, bytes] = {}
    for store in (settings.keystore, settings.truststore):
        if store.location is not None:
            try:
                files[store.location] = read(store.location)
            except OSError as error:
                reason = error.strerror or str(error)
                raise TlsError(f"{store.prefix}.location: {store.location} cannot be read: {reason}") from None
            except ValueError:
                raise TlsError(f"{store.prefix}.location: {store.location!r} is no path") from None
    return files


def material_of(settings: TlsSettings, files: Files) -> Material:
    """Raises TlsError."""
    own = _own(settings.keystore, files)
    return Material(own, _trusted(settings.truststore, files) if settings.truststore.is_given else None)


def _own(store: Store, files: Files) -> KeyWithChain:
    if store.kind != PEM:
        return _own_of_pkcs12(store, files)
    if store.location is not None:
        key_text = chain_text = _text(files[store.location], store.location)
        key_place = chain_place = store.location
    else:
        assert store.key is not None and store.certificates is not None, "checked before"
        key_text, chain_text = store.key, store.certificates
        key_place, chain_place = f"{store.prefix}.key", store.certificates_option
    key = read_private_key(key_text, key_place)
    if key.is_encrypted and store.key_password is None:
        raise TlsError(f"the private key in {key_place} is encrypted: set ssl.key.password")
    chain = tuple(_certificate(der, chain_place) for der in read_certificates(chain_text, chain_place))
    return KeyWithChain(key, store.key_password, chain)


def _trusted(store: Store, files: Files) -> tuple[Certificate, ...]:
    if store.certificates is not None:
        text, place = store.certificates, store.certificates_option
    else:
        assert store.location is not None, "one of the two is given"
        place = store.location
        if store.kind != PEM:
            _, certificates = _pkcs12(store, files)
            if not certificates:
                raise TlsError(f"{place} holds no certificate")
            return tuple(_certificate(der, place) for der in certificates)
        text = _text(files[place], place)
    return tuple(_certificate(der, place) for der in read_certificates(text, place))


def _own_of_pkcs12(store: Store, files: Files) -> KeyWithChain:
    key, certificates = _pkcs12(store, files)
    assert store.location is not None, "PKCS12 comes in files alone, which was checked"
    if key is None or not certificates:
        raise TlsError(f"{store.location} holds no private key with a certificate")
    chain = in_order([_certificate(der, store.location) for der in certificates])
    return KeyWithChain(key, None, tuple(chain))


def _pkcs12(store: Store, files: Files) -> tuple[PrivateKey | None, list[bytes]]:
    """The key, if there is one, and the certificates, the key's first. Raises TlsError."""
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError:
        raise TlsError(
            f"{store.prefix}.type=PKCS12 needs the package cryptography: pip install 'odradek[security]', or use PEM"
        ) from None
    assert store.location is not None, "checked before"
    password = None if store.password is None else store.password.encode()
    try:
        found = pkcs12.load_pkcs12(files[store.location], password)
    except Exception:  # noqa: BLE001  (it raises errors of several libraries, and their texts are not for operators)
        raise TlsError(
            f"{store.location} cannot be read as PKCS12: check the file, and {store.prefix}.password"
        ) from None
    key = None
    if found.key is not None:
        der = found.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        key = PrivateKey("PRIVATE KEY", der)
    certificates = [each.certificate for each in (found.cert, *found.additional_certs) if each is not None]
    return key, [each.public_bytes(Encoding.DER) for each in certificates]


def _certificate(der: bytes, where: str) -> Certificate:
    try:
        return read_certificate(der)
    except DerError as error:
        raise TlsError(f"a certificate in {where} cannot be read: {error}") from None


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise TlsError(
            f"{where} is no PEM file, which is text; if it is PKCS12, say so in the option of its type"
        ) from None
