"""What is written to the metadata store of SCRAM without a client: the cluster's secret, and its first user."""

from typing import Final

from odradek.broker.cluster.keys import SCRAM_SECRET_KEY, scram_user_key
from odradek.broker.cluster.scram_credentials import ITERATIONS_MAX, encode_credential, encode_secret
from odradek.broker.cluster.store import Conflict, MetadataStore, Txn
from odradek.protocol.scram import ALGORITHMS, ITERATIONS_MIN
from odradek.protocol.scram_server import credential_of, salt_text
from odradek.runtime.environment import Environment

SECRET_BYTES: Final = 32
_ENTROPY_BYTES: Final = 17
"""A little more than a salt holds."""


async def ensure_secret(store: MetadataStore, environment: Environment) -> None:
    """Gives the cluster its secret, if it has none: once, whichever broker is first. Raises OSError and others of the
    store."""
    if SCRAM_SECRET_KEY in (await store.read(SCRAM_SECRET_KEY)).entries:
        return
    value = encode_secret(environment.random_bytes(SECRET_BYTES))
    try:
        await store.commit(Txn(expect={SCRAM_SECRET_KEY: 0}, put={SCRAM_SECRET_KEY: value}))
    except Conflict:
        return  # another one was first


async def write_first_user(
    store: MetadataStore,
    mechanism: str,
    user: str,
    password: str,
    iterations: int = ITERATIONS_MIN,
    *,
    environment: Environment | None = None,
) -> None:
    """Stores a user in the store of a cluster that does not run, so that somebody can authenticate when it does. One of
    the same name and mechanism is replaced. Raises ValueError for what Kafka refuses, OSError and others of the store.
    """
    if mechanism not in ALGORITHMS:
        raise ValueError(f"{mechanism} is none of {', '.join(ALGORITHMS)}")
    if not user or not password:
        raise ValueError("user and password must not be empty")
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ValueError(f"iterations must be from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    environment = Environment() if environment is None else environment
    salt = salt_text(int.from_bytes(environment.random_bytes(_ENTROPY_BYTES)))
    credential = credential_of(mechanism, password, salt, iterations)
    await store.commit(Txn(put={scram_user_key(mechanism, user): encode_credential(credential)}))
