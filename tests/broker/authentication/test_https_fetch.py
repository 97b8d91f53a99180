"""Fetching by HTTPS: certificates are checked, redirects not followed, and no answer is without an end."""

import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.authentication import https_fetch
from odradek.broker.authentication.https_fetch import SIZE_BYTES_MAX, FetchFailed, fetch
from tests.client.certificates import Certificates, make_certificates


class Handler(BaseHTTPRequestHandler):
    """Answers by path."""

    posted: list[tuple[str | None, bytes]] = []  # noqa: RUF012  (of the one server)

    def do_GET(self) -> None:
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "/keys")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = {"/keys": b"{}", "/keys?a=b": b"query", "/large": b"x" * (SIZE_BYTES_MAX + 1)}.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.posted.append((self.headers["Authorization"], self.rfile.read(length)))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"access_token":"t"}')

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - as in the library


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(certificates: Certificates) -> Iterator[int]:
    """Its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.socket = certificates.server_context().wrap_socket(running.socket, server_side=True)
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running.server_address[1]
        running.shutdown()
        thread.join()


@pytest.fixture
def trusted(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    return certificates.authority


@pytest.mark.usefixtures("trusted")
def test_an_answer_is_read(server: int) -> None:
    for host in ("localhost", "127.0.0.1"):
        assert fetch(f"https://{host}:{server}/keys", time.monotonic) == b"{}"
    assert fetch(f"https://localhost:{server}/keys?a=b", time.monotonic) == b"query"


@pytest.mark.usefixtures("trusted")
def test_a_form_is_posted(server: int) -> None:
    answer = fetch(f"https://localhost:{server}/", time.monotonic, body=b"a=b", headers={"Authorization": "Basic eA=="})
    assert answer == b'{"access_token":"t"}'
    assert Handler.posted[-1] == ("Basic eA==", b"a=b")


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    ("path", "said"),
    [("/redirect", "answered 302.*redirects are not followed"), ("/nowhere", "answered 404"), ("/large", "more than")],
)
def test_what_is_no_answer(server: int, path: str, said: str) -> None:
    with pytest.raises(FetchFailed, match=said):
        fetch(f"https://localhost:{server}{path}", time.monotonic)


def test_a_stranger_is_not_believed(server: int, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.stranger))
    with pytest.raises(FetchFailed, match="CERTIFICATE_VERIFY_FAILED"):
        fetch(f"https://localhost:{server}/keys", time.monotonic)


@pytest.mark.usefixtures("trusted")
def test_a_certificate_is_for_the_host_that_was_asked(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    connect = socket.create_connection

    def connect_here(_: object, *more: Any, **named: Any) -> socket.socket:
        return connect(("127.0.0.1", server), *more, **named)

    monkeypatch.setattr(socket, "create_connection", connect_here)
    with pytest.raises(FetchFailed, match="CERTIFICATE_VERIFY_FAILED"):
        fetch("https://idp.example/keys", time.monotonic)


@pytest.mark.usefixtures("trusted")
def test_an_answer_that_takes_too_long_is_given_up(server: int) -> None:
    times = iter([0.0, 1e6, 2e6, 3e6])
    with pytest.raises(FetchFailed, match="took more than"):
        fetch(f"https://localhost:{server}/keys", lambda: next(times))


@pytest.mark.parametrize("url", ["http://localhost/keys", "https:///keys", "ftp://x/y", "file:/x", "https://x:99999/"])
def test_what_is_no_https_is_not_asked(url: str) -> None:
    with pytest.raises((FetchFailed, ValueError)):
        fetch(url, time.monotonic)


def test_nobody_listens() -> None:
    with pytest.raises(FetchFailed, match="could not be asked: ConnectionRefusedError"):
        fetch("https://127.0.0.1:1/", time.monotonic)
    assert issubclass(FetchFailed, OSError)
    assert ssl.create_default_context().verify_mode is ssl.CERT_REQUIRED
    assert https_fetch.STEP_S <= https_fetch.TOTAL_S
