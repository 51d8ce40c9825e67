"""Registration of commands: with error messages instead of tracebacks, and with an open API client."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from headgate.cli.output import handle_errors

if TYPE_CHECKING:
    from headgate.client import Headgate as Client
else:
    Client = Any  # the client is loaded only when a command needs it

__all__ = ["Client", "command"]

F = TypeVar("F", bound=Callable[..., None])


def command(app: typer.Typer, name: str | None = None) -> Callable[[F], F]:
    """Register a command. A first parameter named `client` is a connected API client, not an argument."""

    def register(function: F) -> F:
        app.command(name)(handle_errors(_connected(function)))
        return function

    return register


def _connected(function: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].name != "client":
        return function

    @wraps(function)
    def connected(*args: Any, **values: Any) -> None:
        from headgate.cli.client import connect

        with connect() as client:
            function(client, *args, **values)

    connected.__annotations__ = {key: value for key, value in function.__annotations__.items() if key != "client"}
    connected.__dict__["__signature__"] = signature.replace(parameters=parameters[1:])
    return connected
