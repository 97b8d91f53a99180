"""TLS of the listeners: certificates and keys, the contexts made from them, who the certificates say a client is, and
how all of that is replaced while the broker runs.

Bytes of connections are `network` (tls_layer.py); this room knows no connection. What cannot be used is a `TlsError`: a
sentence for the operator, without secrets.
"""
