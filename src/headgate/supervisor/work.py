"""The work of the child processes: server, worker, scheduler."""

import signal
import socket
import threading

import uvicorn
from fastapi import FastAPI

from headgate.app import create_app
from headgate.kit.credentials import Sort, derived_secret
from headgate.platform.secrets.installation_keys import key_file
from headgate.settings.settings import Settings
from headgate.supervisor.scheduler import Scheduler


def serve(settings: Settings, listener: socket.socket) -> None:
    """Serve requests on a socket that the supervisor opened."""
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        forwarded_allow_ips=settings.server.trusted_proxies,
        timeout_graceful_shutdown=int(settings.server.shutdown_seconds),
    )
    _Server(config, app).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Lets those who wait for a statement go when it stops, so that it need not wait for them."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, once requests under way are answered."""
        self._app.state.services.watch.close()
        await super().shutdown(sockets)


def work(settings: Settings, server: str, secret: str | None = None) -> None:
    """Run a worker on this machine's Spark. Without a secret, it uses the local installation."""
    # Only this process loads what speaks with Spark.
    from headgate.execution.spark.member import MemberSpark  # noqa: PLC0415
    from headgate.execution.spark.platform import PlatformSpark  # noqa: PLC0415
    from headgate.execution.worker.class_archive import Archiving  # noqa: PLC0415
    from headgate.execution.worker.connection_checks import CheckHandler  # noqa: PLC0415
    from headgate.execution.worker.replacement import Replacing  # noqa: PLC0415
    from headgate.execution.worker.run_execution import RunHandler  # noqa: PLC0415
    from headgate.execution.worker.table_rewrites import RewriteHandler  # noqa: PLC0415
    from headgate.execution.worker.worker import Worker  # noqa: PLC0415

    secret = secret or derived_secret(Sort.worker, key_file(settings).key("worker"))
    spark = MemberSpark(settings, f"{server}/iceberg")
    worker = Worker(server, secret, spark, slots=settings.spark.slots, prewarm=settings.spark.prewarm)
    platform = PlatformSpark(settings, f"{server}/iceberg")
    folder = settings.data_dir.absolute() / "work" / "runs"
    runs = RunHandler(worker.link, settings, folder, spark, platform)
    checks = CheckHandler(worker.link, settings)
    rewrites = RewriteHandler(worker.link, settings, folder.with_name("rewriting"), platform)
    worker.handle([runs, checks, rewrites], platform)
    worker.parts.append(Archiving(settings, spark))
    # The last to stop: until then, a successor would take this one for alive.
    worker.parts.append(Replacing(worker.link, folder.with_name("workers")))
    # From a thread of its own: the main thread may hold the very lock that `stop` takes.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=worker.stop, daemon=True).start())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.run()


def schedule(settings: Settings) -> None:
    """Run the scheduler."""
    scheduler = Scheduler(settings)
    signal.signal(signal.SIGTERM, lambda *_: scheduler.stop())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    scheduler.run()
