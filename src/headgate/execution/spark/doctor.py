"""Check this machine's requirements for Spark, and report problems with their solution."""

import os
import pwd
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from headgate.contracts import guard_files
from headgate.execution.sandbox import bubblewrap
from headgate.execution.spark import jars, java, sizes, versions
from headgate.execution.spark.errors import SparkUnavailable
from headgate.kit.file_ownership import is_root
from headgate.settings.settings import Settings
from headgate.warehouse.locations import open_store

State = Literal["ok", "note", "wrong"]
_OWN_USER = "Run Headgate as an unprivileged user (docs/how-to/run-as-unprivileged-user.md)"
_SHORT_OF = 0.9
"""A machine with 8 GiB reports slightly less."""


@dataclass(frozen=True)
class DoctorFinding:
    """One line of the report."""

    name: str
    state: State
    detail: str


def findings(settings: Settings) -> Iterator[DoctorFinding]:
    """All checks that do not start Spark."""
    checks: tuple[Callable[[Settings], Iterator[DoctorFinding]], ...] = (
        _versions,
        _java,
        _jars,
        _guard,
        _sandbox,
        _user,
        _memory,
        _warehouse,
        _bucket,
        _server,
    )
    for check in checks:
        yield from check(settings)


def wrong(settings: Settings) -> list[str]:
    """The problems that prevent a worker from starting Spark, with their solutions."""
    checks = (_versions, _java, _jars, _guard, _sandbox, _warehouse)
    return [finding.detail for check in checks for finding in check(settings) if finding.state == "wrong"]


def spark(settings: Settings, catalog_url: str) -> DoctorFinding:
    """Start Spark as a worker does, or connect to the configured server, and verify its guard."""
    from headgate.execution.spark.member import MemberSpark  # noqa: PLC0415 - loads the client

    with tempfile.TemporaryDirectory(prefix="headgate-doctor-") as folder:
        own = settings.model_copy(update={"data_dir": Path(folder)})
        member = MemberSpark(own, catalog_url)
        try:
            member.ensure()
            state = member.state()
        except SparkUnavailable as error:
            return DoctorFinding("spark", "wrong", error.detail)
        finally:
            member.close()
    where = state["url"] or ("in the sandbox" if state["sandboxed"] else "without a sandbox")
    return DoctorFinding("spark", "ok", f"it runs ({where}), and the guard rejects forbidden statements")


def platform(settings: Settings, catalog_url: str) -> Iterator[DoctorFinding]:
    """Check that the Spark at `spark.platform_url` can run the platform's steps."""
    from headgate.execution.spark import remote as elsewhere  # noqa: PLC0415 - loads the client

    where = (settings.spark.platform_url or "").partition("/;")[0]
    results = elsewhere.complaints(settings, catalog_url)
    for complaint in results:
        yield DoctorFinding("platform", "wrong", f"{where}: {complaint}")
    if not results:
        yield DoctorFinding(
            "platform", "ok", f"{where} runs the platform's own steps and Python, and shares the data folder"
        )


def _versions(_: Settings) -> Iterator[DoctorFinding]:
    for complaint in versions.complaints():
        yield DoctorFinding("versions", "wrong", complaint)
    pandas = metadata.version("pandas")
    if int(pandas.partition(".")[0]) >= 3:
        yield DoctorFinding("versions", "wrong", f"pandas {pandas} is installed, pyspark needs 2; install 'pandas<3'")
    elif not versions.complaints():
        names = ("pyspark", "pyiceberg", "pandas", "pyarrow")
        yield DoctorFinding("versions", "ok", ", ".join(f"{name} {metadata.version(name)}" for name in names))


def _java(_: Settings) -> Iterator[DoctorFinding]:
    try:
        yield DoctorFinding("java", "ok", java.java())
    except java.NoJava as error:
        yield DoctorFinding("java", "wrong", str(error))


def _jars(settings: Settings) -> Iterator[DoctorFinding]:
    wanted = [versions.ICEBERG_RUNTIME]
    if settings.warehouse_url.startswith("s3://"):
        wanted.append(versions.ICEBERG_AWS)
    if settings.spark.platform_url is None:
        wanted.extend(versions.PLATFORM)
    for artifact in wanted:
        places = [folder for folder in (jars.default_folder(), settings.spark.jars_dir) if folder is not None]
        file = next((folder / artifact.file for folder in places if (folder / artifact.file).is_file()), None)
        if file is None and settings.spark.jars_dir is not None:
            yield DoctorFinding(
                "jars", "wrong", f"spark.jars_dir has no {artifact.file}; put {artifact.coordinates} there"
            )
        elif file is None:
            yield DoctorFinding(
                "jars", "note", f"{artifact.file} is downloaded at the first start; `make jars` downloads it now"
            )
        else:
            yield _checked(file, artifact)


def _checked(file: Path, artifact: versions.Artifact) -> DoctorFinding:
    try:
        jars.check(file, artifact)
    except (jars.BadJar, OSError) as error:
        return DoctorFinding("jars", "wrong", str(error))
    return DoctorFinding("jars", "ok", f"{file} has the expected checksum")


def _guard(_: Settings) -> Iterator[DoctorFinding]:
    if guard_files.SOURCES.is_dir():
        yield DoctorFinding("guard", "ok", "built from source, next to the package")
    elif guard_files.SHIPPED.is_file():
        yield DoctorFinding("guard", "ok", str(guard_files.SHIPPED))
    else:
        yield DoctorFinding(
            "guard", "wrong", f"{guard_files.SHIPPED} is missing: the package is incomplete; install it again"
        )


def _sandbox(settings: Settings) -> Iterator[DoctorFinding]:
    wanted = settings.spark.sandbox
    if settings.spark.member_url is not None:
        yield DoctorFinding(
            "sandbox", "note", "members' SQL runs at spark.member_url; isolating that server is your responsibility"
        )
    elif wanted == "off":
        yield DoctorFinding(
            "sandbox", "note", "spark.sandbox is `off`: only the guard protects this machine from members' SQL"
        )
    elif (lacking := bubblewrap.missing(settings.spark.sandbox_uid)) is None:
        yield DoctorFinding("sandbox", "ok", "bubblewrap can create sandboxes")
    else:
        yield DoctorFinding("sandbox", "wrong" if wanted == "required" else "note", lacking)


def _user(settings: Settings) -> Iterator[DoctorFinding]:
    """Check the user of Headgate and of its sandboxes."""
    if not is_root():
        yield DoctorFinding("user", "ok", f"Headgate and its sandboxes run as the user id {os.getuid()}")
        return
    outside = list(_outside_of_sandboxes(settings))
    for what in outside:
        yield DoctorFinding(
            "user", "wrong", f"Headgate runs as root, and {what} runs outside a sandbox as root. {_OWN_USER}"
        )
    uid = settings.spark.sandbox_uid
    with suppress(KeyError):
        name = pwd.getpwuid(uid).pw_name
        detail = (
            f"spark.sandbox_uid is {uid}, the user {name}, who can change the files of tables; choose an unused user id"
        )
        yield DoctorFinding("user", "wrong", detail)
    if not outside:
        detail = f"Headgate runs as root; its sandboxes run as the user id {uid}, everything else as root. {_OWN_USER}"
        yield DoctorFinding("user", "note", detail)


def _outside_of_sandboxes(settings: Settings) -> Iterator[str]:
    is_local = settings.spark.member_url is None or settings.spark.platform_url is None
    if is_local and (settings.spark.sandbox == "off" or bubblewrap.missing(settings.spark.sandbox_uid) is not None):
        yield "Spark"
    if settings.notebooks.mode == "trusted":
        yield "each notebook (notebooks.mode is `trusted`)"


def _memory(settings: Settings) -> Iterator[DoctorFinding]:
    gib = sizes.machine_bytes() / sizes.GIB
    heap = sizes.memory(settings.spark)
    detail = f"{gib:.1f} GiB; each Spark server uses {heap} and about half a gigabyte more"
    if gib < sizes.MINIMUM_GIB * _SHORT_OF:
        yield DoctorFinding("memory", "wrong", f"{detail}; Headgate needs {sizes.MINIMUM_GIB} GiB")
    elif sizes.memory_bytes(heap) > sizes.machine_bytes() // 2:
        yield DoctorFinding("memory", "wrong", f"{detail}; set spark.memory to less than half of it")
    else:
        yield DoctorFinding("memory", "ok", detail)


def _warehouse(settings: Settings) -> Iterator[DoctorFinding]:
    parts = urlsplit(settings.warehouse_url)
    if parts.scheme != "file":
        return
    folder = Path(unquote(parts.path))
    # A missing folder is created at the first start, below its nearest existing parent.
    there = next(place for place in (folder, *folder.parents) if place.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=there):
            yield DoctorFinding("warehouse", "ok", f"{folder} is writable")
    except OSError as error:
        yield DoctorFinding(
            "warehouse", "wrong", f"{there} is not writable: {error.strerror}; make this user its owner"
        )


def _bucket(settings: Settings) -> Iterator[DoctorFinding]:
    """Check that a warehouse bucket is usable and safe."""
    if settings.warehouse_url.startswith("file:"):
        return
    complaints = open_store(settings).check()
    for complaint in complaints:
        yield DoctorFinding("warehouse", "wrong", complaint)
    if not complaints:
        yield DoctorFinding(
            "warehouse", "ok", f"{settings.warehouse_url} is usable, and conditional writes are rejected"
        )


def _server(settings: Settings) -> Iterator[DoctorFinding]:
    import httpx2  # noqa: PLC0415 - only here

    address = local_url(settings)
    try:
        ready = httpx2.get(f"{address}/readyz", timeout=5).is_success
    except httpx2.TransportError:
        yield DoctorFinding("server", "note", f"no server at {address}; start it with `headgate up`")
        return
    detail = "is ready" if ready else "answers, but is not ready; see its log"
    yield DoctorFinding("server", "ok" if ready else "wrong", f"{address} {detail}")


def local_url(settings: Settings) -> str:
    """The server's URL on this machine."""
    host = settings.server.host
    host = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - a comparison
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.server.port}"
