"""Values by reference: what Kafka's three providers look up; where they find nothing, what is told without a value."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.config.config_providers import resolved
from odradek.broker.config.option import ByReference, ConfigError, has_reference

CLASSES = "org.apache.kafka.common.config.provider."
DECLARED = {
    "config.providers": "env, file,dir",
    "config.providers.env.class": f"{CLASSES}EnvVarConfigProvider",
    "config.providers.file.class": f"{CLASSES}FileConfigProvider",
    "config.providers.dir.class": f"{CLASSES}DirectoryConfigProvider",
}
HUNTER = "hunter2 ä=:#"
ENVIRON = {"PASSWORD": HUNTER, "HOST": "b1.example", "EMPTY": "", "NESTED": "${env:PASSWORD}"}
FILES = {
    "/etc/odradek/secrets": b"# of broker 1\nkey = hunter2 \\u00e4\\=:#\nother=x\n",
    "relative": b"key=of a relative path\n",
    "/run/secrets/key": b"of a directory\n",
    "/run/secrets/..data/key": b"of a link",
    "/etc/shadow": b"key=root's\n",
    "/etc/broken": b"key=\\u12\n",
    "/etc/bytes": b"key=\xff\xfe\n",
}
# ConfigTransformer.java
KAFKAS_PATTERN = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")


def read(path: str) -> bytes:
    try:
        return FILES[path]
    except KeyError:
        raise FileNotFoundError(2, "No such file or directory", path) from None


def look_up(text: str, **parameters: str) -> str:
    static = DECLARED | {f"config.providers.{name}": value for name, value in parameters.items()} | {"option": text}
    return resolved(static, ENVIRON, read)["option"]


def refused(text: str, **parameters: str) -> str:
    with pytest.raises(ConfigError) as caught:
        look_up(text, **parameters)
    assert "hunter2" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:PASSWORD}", HUNTER),
        ("${env:EMPTY}", ""),
        ("SASL_SSL://${env:HOST}:9093,B://${env:HOST}:1", "SASL_SSL://b1.example:9093,B://b1.example:1"),
        ("${file:/etc/odradek/secrets:key}", HUNTER),
        ("${file:relative:key}", "of a relative path"),
        ("${dir:/run/secrets:key}", "of a directory"),
        ('required username="u" password="${file:/etc/odradek/secrets:other}";', 'required username="u" password="x";'),
        ("${env:NESTED}", "${env:PASSWORD}"),
    ],
)
def test_what_is_looked_up(text: str, value: str) -> None:
    found = look_up(text)
    assert found == value
    assert isinstance(found, ByReference)


def test_what_has_no_reference_stays_as_it_is() -> None:
    found = resolved(DECLARED | {"a": "$1 ${x} $$ {a:b}", "b": "1"}, ENVIRON, read)
    assert found == {"config.providers": "env, file,dir", "a": "$1 ${x} $$ {a:b}", "b": "1"}
    assert not any(isinstance(text, ByReference) for text in found.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${env:NO_SUCH}", "option refers to ${env:NO_SUCH}: there is no variable NO_SUCH in the environment"),
        ("${env:/path:PASSWORD}", "a variable of the environment has no path"),
        ("${vault:a:b}", "config.providers declares no provider 'vault': write config.providers=vault and config."),
        ("${file:key}", "a path belongs between the provider and the key"),
        ("${file::key}", "a path belongs between the provider and the key"),
        ("${file:/etc/odradek/secrets:password}", "the file /etc/odradek/secrets has no password"),
        ("${file:/no/such:key}", "${file:/no/such:key}: /no/such cannot be read: No such file or directory"),
        ("${file:/etc/broken:key}", "/etc/broken is no properties file: line 1"),
        ("${file:/etc/bytes:key}", "/etc/bytes is no text in UTF-8"),
        ("${dir:/run/secrets:no}", "/run/secrets/no cannot be read"),
        ("${dir:/run:secrets/key}", "'secrets/key' is no name of a file in /run"),
        ("${dir:/run/secrets:..}", "'..' is no name of a file in /run/secrets"),
        ("${dir:/run/secrets:}", "'' is no name of a file in /run/secrets"),
    ],
)
def test_what_cannot_be_looked_up_is_refused_and_no_value_is_told(text: str, said: str) -> None:
    """Kafka leaves the text in place of the value: it would be the password."""
    assert said in refused(text)


def test_a_reference_without_providers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^option refers to \$\{env:PASSWORD\}: config.* declares no provider"):
        resolved({"option": "${env:PASSWORD}"}, ENVIRON, read)


def test_every_mistake_is_told() -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(DECLARED | {"a": "${env:X}", "b": "${file:/x:y}", "c": "${env:HOST}"}, ENVIRON, read)
    first, *lines = str(caught.value).splitlines()
    assert first == "2 mistakes in the configuration of the broker:"
    assert [line.split()[0] for line in lines] == ["a", "b"]


# -- what a provider may look up --------------------------------------------------------------------------------------


def test_an_allow_list_of_variables() -> None:
    only = {"env.param.allowlist.pattern": "HO.T|EMPTY"}
    assert look_up("${env:HOST}", **only) == "b1.example"
    assert "allowlist.pattern of the provider does not allow it" in refused("${env:PASSWORD}", **only)
    assert "does not allow it" in refused("${env:HOST}", **{"env.param.allowlist.pattern": "HO"}), "the whole name"
    assert "'(' is no pattern" in refused("${env:HOST}", **{"env.param.allowlist.pattern": "("})


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("/etc/odradek/secrets", True),
        ("/etc/odradek/../odradek/./secrets", True),
        ("/etc/odradek/../shadow", False),
        ("/etc/shadow", False),
        ("relative", False),
    ],
)
def test_allowed_paths_of_files(path: str, is_allowed: bool) -> None:
    only = {"file.param.allowed.paths": "/var, /etc/odradek/"}
    if is_allowed:
        assert look_up(f"${{file:{path}:key}}", **only) == HUNTER
    else:
        assert "allowed.paths of the provider does not allow" in refused(f"${{file:{path}:key}}", **only)


def test_allowed_paths_are_whole_names() -> None:
    assert "does not allow" in refused("${file:/etc/odradek/secrets:key}", **{"file.param.allowed.paths": "/etc/odr"})
    assert look_up("${file:/etc/shadow:key}", **{"file.param.allowed.paths": "/"}) == "root's"
    assert look_up("${file:/etc/shadow:key}", **{"file.param.allowed.paths": ""}) == "root's", "as Kafka has it"
    assert "the path etc is not absolute" in refused("${file:etc:key}", **{"file.param.allowed.paths": "etc"})


def test_allowed_paths_of_directories() -> None:
    only = {"dir.param.allowed.paths": "/run/secrets"}
    assert look_up("${dir:/run/secrets:key}", **only) == "of a directory"
    assert look_up("${dir:/run/secrets/..data:key}", **only) == "of a link"
    assert "does not allow /run" in refused("${dir:/run/secrets/..:key}", **only)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("env.class", "com.example.Vault", "is com.example.Vault, and classes of Java are not loaded"),
        ("env.class", "", "config.providers.env.class is missing: it must be one of"),
        ("env.clas", "x", "no parameter of a provider in config.providers; did you mean config.providers.env.class?"),
        ("other.class", f"{CLASSES}FileConfigProvider", "config.providers.other.class, no parameter of a provider"),
        ("env.param.allowed.paths", "/", "config.providers.env.param.allowed.paths, no parameter of a provider"),
    ],
)
def test_what_is_declared_wrongly_is_refused(name: str, value: str, said: str) -> None:
    """Kafka passes over most of this, and the references of that provider are left as they are."""
    assert said in refused("x", **{name: value})


# -- the form ---------------------------------------------------------------------------------------------------------


@given(st.text("${}:ab", max_size=20))
def test_a_reference_is_known_by_kafkas_pattern(text: str) -> None:
    assert has_reference(text) == (KAFKAS_PATTERN.search(text) is not None)


def test_a_text_that_is_made_to_be_slow_is_not() -> None:
    """A client may send it, as the value of an option: a pattern would look through all of it from each sign."""
    assert not has_reference("${" * 1_000_000 + "}")
    assert has_reference("${" * 1_000_000 + ":}")
