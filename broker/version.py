"""The version of this distribution, as it tells it to users and clients."""

VERSION = "0.1.0"
