"""Who is at the other end of a connection: SASL, the broker's side, and how this broker says who it is to others.

`sasl_connection.py` is one connection's way to a principal, and back to it when its session ends; `sasl_listener.py` is
what a listener offers; plain, scram and oauthbearer are the mechanisms. `inter_broker.py` is the other side: this
broker as a client. All of it is imported where SASL is used, and nowhere else; PyJWT where tokens are checked.

Which requests a connection may send before it has authenticated says `network`; what its principal may do, `access`.
"""
