"""What is wrong with the settings, certificates or keys of a listener, in one sentence."""


class TlsError(Exception):
    """TLS cannot be had with these settings. The text says which, why, and what to do; it holds no secret."""
