"""Servers on this machine that the tests call, names that lead to them, and certificates for them."""

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headgate.outgoing.client import Outgoing
from headgate.settings.outgoing import OutgoingSettings

HERE = "127.0.0.1"
ELSEWHERE = "127.0.0.2"
PUBLIC = "93.184.215.14"


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class Served:
    """A server that runs, and what it has seen."""

    port: int
    seen: list[Seen] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def url(self, host: str = "hooks.test", path: str = "/", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


class Handler(BaseHTTPRequestHandler):
    """Notes a request, and leaves the answer to the test."""

    protocol_version = "HTTP/1.1"
    served: Served
    answer: "Callable[[Handler, Seen], None]"

    def note(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, self.path, headers, body, self.client_address[1])
        self.served.seen.append(seen)
        type(self).answer(self, seen)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self.note
        raise AttributeError(name)

    def reply(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Callers that hang up are what many tests are about."""


class _Server6(_Server):
    address_family = socket.AF_INET6


Answer = Callable[[Handler, Seen], None]


def fine(handler: Handler, seen: Seen) -> None:
    """Answer with the path that was asked for."""
    handler.reply(body=seen.path.encode())


def redirect(location: str, status: int = 302) -> Answer:
    """Answer with a redirect."""
    return lambda handler, _: handler.reply(status, location=location)


@contextmanager
def serve(answer: Answer = fine, address: str = HERE, tls: ssl.SSLContext | None = None) -> Iterator[Served]:
    """An HTTP server that lives as long as the block."""
    kind = _Server6 if ":" in address else _Server
    with kind((address, 0), Handler) as server:
        served = Served(server.server_port)
        server.RequestHandlerClass = type("Own", (Handler,), {"served": served, "answer": staticmethod(answer)})
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield served
        finally:
            served.ended.set()
            server.shutdown()
            thread.join()


@contextmanager
def raw(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[Served]:
    """A server below HTTP: the test has the connection to itself until the block ends."""
    with socket.create_server((HERE, 0)) as listener:
        served = Served(listener.getsockname()[1])

        def run() -> None:
            listener.settimeout(10)
            try:
                connection, _ = listener.accept()
                with connection:
                    talk(connection, served.ended)
            except OSError:
                pass

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield served
        finally:
            served.ended.set()
            thread.join()


class Names:
    """A resolver: each question gets the next answer, and the last one stays."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(found) for name, found in answers.items()}
        self.asked: list[str] = []

    def __call__(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        found = self.answers.get(name)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found.pop(0) if len(found) > 1 else found[0]


@cache
def _default() -> ssl.SSLContext:
    return ssl.create_default_context()


HOOKS = Names(hooks_test=[[HERE]], other_test=[[HERE]])


@contextmanager
def client(
    *allow: str,
    resolver: Names | Callable[[str], Sequence[str]] = HOOKS,
    tls: ssl.SSLContext | None = None,
    **more: Any,
) -> Iterator[Outgoing]:
    """A client with settings of its own; without `allow`, it may call this machine."""
    settings = OutgoingSettings(allow=list(allow) or [HERE], **{"timeout_seconds": 10, **more})
    found = Outgoing(settings, resolver=resolver, ssl_context=tls or _default())
    try:
        yield found
    finally:
        found.close()


class Authority:
    """Signs certificates that its own clients trust."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.key = folder, ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "An authority for tests")])
        self.certificate = self._signed(self.name, self.key.public_key(), x509.BasicConstraints(ca=True, path_length=0))

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *parts: x509.ExtensionType
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - dt.timedelta(hours=1))
        builder = builder.not_valid_after(now + dt.timedelta(hours=1))
        for part in parts:
            builder = builder.add_extension(part, critical=isinstance(part, x509.BasicConstraints))
        return builder.sign(self.key, hashes.SHA256())

    def trusted(self) -> ssl.SSLContext:
        """What a client uses that trusts this authority and no other."""
        text = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        return ssl.create_default_context(cadata=text)

    def server(self, *hosts: str) -> ssl.SSLContext:
        """What a server of these hosts uses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        names = x509.SubjectAlternativeName([_general(host) for host in hosts])
        certificate = self._signed(subject, key.public_key(), names)
        file = self.folder / f"{hosts[0].replace(':', '_')}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
