"""SCRAM, the broker's side: protocol/scram_server.py with the credentials of the cluster.

Who has no credential is answered as those who have one, with a salt that is made up, and the proof then never fits
(`made_up`). It is made up for every user, and so the time says nothing either. Users can be told apart from nobody by
what differs from the usual: other iterations than 4,096, or a salt of another length than Kafka's tools make.
"""

from typing import Final

from odradek.broker.authentication.mechanism import Answer, Authenticated, Refused
from odradek.broker.authentication.plain import OTHER_AUTHORIZATION
from odradek.broker.cluster.scram_credentials import ScramCredentials
from odradek.protocol.scram import ScramError
from odradek.protocol.scram_server import ScramServer, made_up, read_client_first

TOKENS: Final = "tokenauth"
"""The extension by which Kafka's clients say that they have a delegation token."""
NO_TOKENS: Final = "Delegation tokens are not served: authenticate with the credentials of a user"


class ScramExchange:
    """One exchange. `nonce`: printable ASCII without commas, random, and never used before."""

    def __init__(self, mechanism: str, credentials: ScramCredentials, nonce: str) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._nonce = nonce
        self._user = ""
        self._server: ScramServer | None = None

    async def respond(self, token: bytes) -> Answer:
        """Raises Refused."""
        try:
            if self._server is None:
                return Answer(self._begin(token))
            return Answer(self._server.final(token), Authenticated(self._user))
        except ScramError as error:
            raise Refused(str(error), user=self._user) from None

    def _begin(self, token: bytes) -> bytes:
        """Raises ScramError, Refused."""
        first = read_client_first(token)
        self._user = first.user
        if first.extensions.get(TOKENS) == "true":
            raise Refused("it wants to authenticate by a delegation token", told=NO_TOKENS, user=first.user)
        if first.authorization_id not in ("", first.user):
            raise Refused("it wants to be authorized as somebody else", told=OTHER_AUTHORIZATION, user=first.user)
        if self._credentials.secret is None:
            raise Refused("the cluster has no secret to hide unknown users by: restart a broker", user=first.user)
        nobody = made_up(self._mechanism, first.user, self._credentials.secret)
        credential = self._credentials.find(self._mechanism, first.user)
        self._server = ScramServer(self._mechanism, first, credential or nobody, self._nonce)
        return self._server.first()
