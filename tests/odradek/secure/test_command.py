"""`odradek secure`: command lines, exit codes, and what is printed."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from odradek.client.commands import failures
from odradek.runtime.properties import parse_properties
from odradek.secure.command import secure
from tests.client.certificates import Certificates, make_certificates
from tests.odradek.secure.broker_rooms import put_into
from tests.odradek.secure.listeners import StrangersListener, babbling, in_thread, listening


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def port(certificates: Certificates) -> Generator[int]:
    with in_thread(listening(StrangersListener(("SCRAM-SHA-512",)), certificates.server_context())) as found:
        yield found


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(secure, list(arguments))


# --------------------------------------------------------------------------------------------------------------- init
def test_init_makes_what_a_broker_is_started_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_into(monkeypatch)
    place = tmp_path / "secure"
    arguments = ("init", "--host", "b1.example", "--host", "10.0.0.7", "--clients", "billing,reports")
    done = ran(*arguments, "--directory", str(place), "--listen", "[::]:9094", "--days", "30")
    assert done.exit_code == 0, done.output
    assert f"odradek serve --config {place}/secure.properties" in done.output
    options = parse_properties((place / "secure.properties").read_text())
    assert options["listeners"] == "SASL_SSL://[::]:9094"
    assert options["advertised.listeners"] == "SASL_SSL://b1.example:9094"
    assert options["log.dirs"] == f"{place}/data"
    again = ran(*arguments, "--directory", str(place))
    assert again.exit_code == failures.REFUSED
    assert "is there already" in again.output


def test_a_store_on_etcd_comes_from_a_file(tmp_path: Path) -> None:
    config = tmp_path / "etcd.properties"
    config.write_text("metadata.store=etcd://e:2379/k\n")
    place = tmp_path / "secure"
    common = ("init", "--host", "b", "--directory", str(place), "--config", str(config))
    done = ran(*common)
    assert done.exit_code == failures.USAGE
    assert "etcd without TLS" in done.output
    config.write_text("listeners=PLAINTEXT://b:1\n")
    done = ran(*common)
    assert done.exit_code == failures.USAGE
    assert "here it is for metadata.store and its options alone" in done.output
    assert not place.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("init",), "give --host"),
        (("init", "--host", "::"), "is every address"),
        (("init", "--host", "b", "--clients", "admin"), "made anyway"),
        (("init", "--host", "b", "--listen", "9093"), "--listen 9093"),
        (("init", "--host", "b", "--listen", "127.0.0.1:0"), "name one"),
        (("init", "--host", "b", "--days", "0"), "0 is not in the range"),
        (("check",), "what is to be checked?"),
        (("check", "b1.example"), "the address b1.example"),
        (("check", "b:1", "--ca", "/nowhere"), "does not exist"),
    ],
)
def test_a_wrong_command_line_is_told(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ran(*arguments)
    assert done.exit_code == failures.USAGE
    assert said in done.output
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------------------------- check
def test_a_listener_that_protects_itself_is_well(certificates: Certificates, port: int) -> None:
    done = ran("check", f"127.0.0.1:{port}", "--ca", str(certificates.authority))
    assert "SASL_SSL" in done.output
    assert "SCRAM-SHA-512" in done.output
    assert done.exit_code == failures.REFUSED  # the certificate of the tests ends in two days
    assert "weak: the certificate ends in" in done.output


def test_json_has_all_of_it(certificates: Certificates, port: int) -> None:
    done = ran("check", f"127.0.0.1:{port}", "--ca", str(certificates.stranger), "--json")
    assert done.exit_code == failures.REFUSED
    told = json.loads(done.stdout)
    assert told["mechanisms"] == ["SCRAM-SHA-512"]
    assert told["tls"]["client_certificate"] == "NONE"
    assert any("not trusted" in finding["what"] for finding in told["findings"])


def test_a_note_is_no_failure() -> None:
    with in_thread(listening(StrangersListener())) as port:
        done = ran("check", f"127.0.0.1:{port}")
    assert done.exit_code == 0, done.output
    assert "note: nothing is encrypted" in done.output


def test_where_nothing_answers_the_exit_code_says_so() -> None:
    with in_thread(babbling()) as port:
        pass
    done = ran("check", f"127.0.0.1:{port}", "--timeout", "5")
    assert done.exit_code == failures.NO_ANSWER
    assert "nothing listens" in done.output


def test_authorities_that_are_none_are_told(tmp_path: Path, port: int) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("no certificate")
    done = ran("check", f"127.0.0.1:{port}", "--ca", str(path))
    assert done.exit_code == failures.USAGE
    assert "holds no certificates as PEM" in done.output


def test_a_configuration_can_be_checked_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from odradek.secure import config_findings
    from odradek.secure.findings import Finding, Level

    path = tmp_path / "secure.properties"
    path.write_text("node.id=1\n")
    path.chmod(0o600)
    found = [Finding(Level.WEAK, "something")]

    def look(path: str) -> list[Finding]:
        return found

    monkeypatch.setattr(config_findings, "config_findings", look)
    done = ran("check", "--config", str(path))
    assert done.exit_code == failures.REFUSED
    assert "weak: something" in done.output
    found.clear()
    assert ran("check", "--config", str(path)).exit_code == 0
