"""Values by reference, `${provider:[path:]key}`, and Kafka's three providers of them (KIP-297, 421, 632, 887). Pure.

    config.providers=env,file,dir
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
    config.providers.env.param.allowlist.pattern=ODRADEK_.*
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/odradek
    config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider

    ${env:NAME}                a variable of the environment
    ${file:/path:key}          a name in a properties file
    ${dir:/path:key}           the content of a file in a directory, as Kubernetes mounts secrets

A value may be made of several, with text around them. What is looked up is not looked through for references again.

Rules, beyond Kafka's: a reference that cannot be resolved is refused, where Kafka leaves its text in place of the value
(which may then be a password that everybody knows); so is one that names a provider that is not declared, and a
provider without a class. A line end at the end of a directory's file is dropped. Errors name provider, path and key,
and never a value. References count in what an operator starts a broker with (`load_static`), and nowhere else.
"""

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from odradek.broker.config.option import ByReference, ConfigError, ConfigMistakes, has_reference, nearest
from odradek.broker.config.secure_options import PARAMETERS, PROVIDERS
from odradek.runtime.properties import parse_properties

CLASSES: Final = "org.apache.kafka.common.config.provider."
ENVIRONMENT, FILE, DIRECTORY = (f"{CLASSES}{name}ConfigProvider" for name in ("EnvVar", "File", "Directory"))
ALLOWLIST, ALLOWED_PATHS = "allowlist.pattern", "allowed.paths"
_PARAMETER_OF: Final = {ENVIRONMENT: ALLOWLIST, FILE: ALLOWED_PATHS, DIRECTORY: ALLOWED_PATHS}
_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
"""ConfigTransformer.DEFAULT_PATTERN."""


class _NotResolved(Exception):
    """Why not, in words that follow the reference and a colon."""


class _Provider(NamedTuple):
    """One that is declared. `pattern` and `paths`: what it may look up; None: anything."""

    kind: str
    pattern: re.Pattern[str] | None = None
    paths: tuple[str, ...] | None = None


def resolved(static: Mapping[str, str], environ: Mapping[str, str], read: Callable[[str], bytes]) -> dict[str, str]:
    """The options with their values looked up, marked as `ByReference`, and without the providers' parameters. `read`
    gives the content of a file, or raises OSError.

    Raises ConfigError, which names every mistake.
    """
    mistakes: list[str] = []
    providers = _declared(static, mistakes)
    look_up = _LookUp(providers, environ, read)
    found: dict[str, str] = {}
    for name, text in static.items():
        if name.startswith(PARAMETERS):
            continue
        found[name] = text
        if name == PROVIDERS or not has_reference(text):
            continue
        try:
            found[name] = look_up.replaced(text)
        except ConfigError as error:
            mistakes.append(f"{name} refers to {error}")
    if mistakes:
        raise ConfigMistakes(mistakes)
    return found


# ---------------------------------------------------------------------------------------------------- what is declared
def _declared(static: Mapping[str, str], mistakes: list[str]) -> dict[str, _Provider]:
    names = list(dict.fromkeys(name.strip() for name in static.get(PROVIDERS, "").split(",") if name.strip()))
    providers: dict[str, _Provider] = {}
    known: set[str] = set()
    for name in names:
        prefix = f"{PARAMETERS}{name}."
        known.add(f"{prefix}class")
        try:
            providers[name] = _provider(prefix, static, known)
        except ConfigError as error:
            mistakes.append(str(error))
    for name in static:
        if name.startswith(PARAMETERS) and name not in known:
            near = nearest(name, sorted(known))
            hint = "" if near is None else f"; did you mean {near}?"
            mistakes.append(f"Unknown broker config name: {name}, no parameter of a provider in {PROVIDERS}{hint}")
    return providers


def _provider(prefix: str, static: Mapping[str, str], known: set[str]) -> _Provider:
    """Raises ConfigError."""
    kind = static.get(f"{prefix}class", "").strip()
    if kind not in _PARAMETER_OF:
        said = f"is {kind}, and classes of Java are not loaded" if kind else "is missing"
        raise ConfigError(f"{prefix}class {said}: it must be one of {', '.join(_PARAMETER_OF)}")
    name = f"{prefix}param.{_PARAMETER_OF[kind]}"
    known.add(name)
    text = static.get(name)
    if text is None:
        return _Provider(kind)
    if kind == ENVIRONMENT:
        try:
            return _Provider(kind, pattern=re.compile(text))
        except re.error as error:
            raise ConfigError(f"{name}: {text!r} is no pattern: {error}") from None
    paths = tuple(posixpath.normpath(path.strip()) for path in text.split(",") if path.strip())
    for path in paths:
        if not path.startswith("/"):
            raise ConfigError(f"{name}: the path {path} is not absolute")
    return _Provider(kind, paths=paths or None)


# ------------------------------------------------------------------------------------------------------- looking it up
class _LookUp:
    """Looks values up, and reads each file once."""

    def __init__(
        self, providers: Mapping[str, _Provider], environ: Mapping[str, str], read: Callable[[str], bytes]
    ) -> None:
        self._providers = providers
        self._environ = environ
        self._read = read
        self._files: dict[str, Mapping[str, str]] = {}

    def replaced(self, text: str) -> ByReference:
        """Raises ConfigError, which begins with the reference."""
        return ByReference(_REFERENCE.sub(self._value, text))

    def _value(self, match: re.Match[str]) -> str:
        name, path, key = match[1], match[2] or "", match[3]
        try:
            provider = self._providers.get(name)
            if provider is None:
                raise _NotResolved(
                    f"{PROVIDERS} declares no provider {name!r}: write {PROVIDERS}={name} and "
                    f"{PARAMETERS}{name}.class={CLASSES}…"
                )
            if provider.kind == ENVIRONMENT:
                return self._of_environment(provider, path, key)
            path = _allowed(provider, path)
            return self._of_file(path, key) if provider.kind == FILE else self._of_directory(path, key)
        except _NotResolved as error:
            raise ConfigError(f"{match[0]}: {error}") from None

    def _of_environment(self, provider: _Provider, path: str, key: str) -> str:
        if path:
            raise _NotResolved("a variable of the environment has no path before its name")
        if provider.pattern is not None and not provider.pattern.fullmatch(key):
            raise _NotResolved(f"{ALLOWLIST} of the provider does not allow it")
        try:
            return self._environ[key]
        except KeyError:
            raise _NotResolved(f"there is no variable {key} in the environment") from None

    def _of_file(self, path: str, key: str) -> str:
        values = self._files.get(path)
        if values is None:
            try:
                values = parse_properties(self._text(path))
            except ValueError as error:
                raise _NotResolved(f"{path} is no properties file: {error}") from None
            self._files[path] = values
        if key not in values:
            raise _NotResolved(f"the file {path} has no {key}")
        return values[key]

    def _of_directory(self, path: str, key: str) -> str:
        if "/" in key or key in ("", ".", ".."):
            raise _NotResolved(f"{key!r} is no name of a file in {path}")
        return self._text(posixpath.join(path, key)).removesuffix("\n").removesuffix("\r")

    def _text(self, path: str) -> str:
        try:
            return self._read(path).decode()
        except OSError as error:
            raise _NotResolved(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
        except UnicodeDecodeError:
            raise _NotResolved(f"{path} is no text in UTF-8") from None


def _allowed(provider: _Provider, path: str) -> str:
    """The path to read. Where only some are allowed it is made plain first, so that `..` leads out of none
    (AllowedPaths.java); links are followed. Raises _NotResolved."""
    if not path:
        raise _NotResolved("a path belongs between the provider and the key")
    if provider.paths is None:
        return path
    plain = posixpath.normpath(path)
    if not any(plain == allowed or plain.startswith(f"{allowed.rstrip('/')}/") for allowed in provider.paths):
        raise _NotResolved(f"{ALLOWED_PATHS} of the provider does not allow {plain}")
    return plain
