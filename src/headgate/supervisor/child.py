"""A child of the supervisor: a server process, or the scheduler. `python -m headgate.supervisor.child`."""

import signal
import socket
import sys

from headgate.config import BadSettings, load
from headgate.edge.logs import configure
from headgate.supervisor.preflight import NotReady, check
from headgate.supervisor.processes import CONFIGURATION_FAULT, die_with_parent


def serve(listener: int) -> None:
    """Answer requests on a socket that the supervisor opened."""
    import uvicorn

    from headgate.app import create_app

    settings = load()
    configure(settings.log)
    check(settings)
    config = uvicorn.Config(
        create_app(settings),
        loop="uvloop",
        http="httptools",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=int(settings.server.shutdown_seconds),
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=listener)])


def schedule() -> None:
    """Do what must be done by one process at a time."""
    from headgate.supervisor.scheduler import Scheduler

    settings = load()
    configure(settings.log)
    check(settings)
    scheduler = Scheduler(settings)
    signal.signal(signal.SIGTERM, lambda *_: scheduler.stop())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    scheduler.run()


def main(arguments: list[str]) -> int:
    """Be the child that the arguments name."""
    die_with_parent()
    try:
        if arguments[0] == "server":
            serve(int(arguments[1]))
        else:
            schedule()
    except (BadSettings, NotReady) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the terminal's answer
        return CONFIGURATION_FAULT
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
