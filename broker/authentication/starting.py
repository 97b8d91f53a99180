"""How a broker comes by its SASL at its start: where a listener speaks it. Nothing of it is imported otherwise."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.broker.cluster.store import MetadataStore
from odradek.broker.config.settings import Settings
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

if TYPE_CHECKING:
    from odradek.broker.authentication.authentication import Authentication
    from odradek.broker.cluster.scram_credentials import ScramCredentials


async def authentication_of(
    settings: Settings,
    environment: Environment,
    tasks: Tasks,
    store: MetadataStore,
    credentials: "Callable[[], ScramCredentials | None]",
) -> "Authentication | None":
    """SASL of this broker, loaded and kept up to date by `tasks`; None without a listener that speaks it.

    Where SCRAM is offered the cluster has a secret from here on. `credentials`: as the broker knows them now. Raises
    ConfigError, OSError and others of the store.
    """
    names = [each.name for each in settings.listeners if settings.protocol(each).needs_authentication]
    if not names:
        return None
    from odradek.broker.authentication.authentication import Authentication
    from odradek.broker.cluster.scram_store import ensure_secret
    from odradek.broker.disk.file_disk import FileDisk
    from odradek.broker.disk.open_files import warn_of_open_file

    authentication = Authentication(names, settings.config, environment, tasks, FileDisk(), credentials)
    await authentication.load()
    for path in authentication.password_files:
        warn_of_open_file(path)
    if authentication.needs_scram:
        await ensure_secret(store, environment)
    authentication.start()
    return authentication
