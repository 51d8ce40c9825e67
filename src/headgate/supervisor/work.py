"""What the children do: answer requests, or do what one process at a time must do."""

import signal
import socket

import uvicorn

from headgate.app import create_app
from headgate.config import Settings
from headgate.supervisor.scheduler import Scheduler


def serve(settings: Settings, listener: socket.socket) -> None:
    """Answer requests on a socket that the supervisor opened."""
    config = uvicorn.Config(
        create_app(settings),
        loop="uvloop",
        http="httptools",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        forwarded_allow_ips=settings.server.trusted_proxies,
        timeout_graceful_shutdown=int(settings.server.shutdown_seconds),
    )
    uvicorn.Server(config).run(sockets=[listener])


def schedule(settings: Settings) -> None:
    """Do what must be done by one process at a time."""
    scheduler = Scheduler(settings)
    signal.signal(signal.SIGTERM, lambda *_: scheduler.stop())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    scheduler.run()
