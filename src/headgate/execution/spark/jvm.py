"""Starts a Spark server as a plain Java program, which is faster than Spark's own scripts."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from headgate.execution.spark.conf import CONNECT, Conf
from headgate.kit import untrusted_files

_OPEN = (
    *("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent", "util.concurrent.atomic"),
)
_OPEN_INTERNAL = ("jdk.internal.ref", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar")

MODULES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPEN),
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPEN_INTERNAL),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
)
"""The options that Spark's scripts add; a test compares them."""

_NOT_STOPPED = re.compile(r"^Killed task \d+ could not be stopped within \d+ ms; not killing JVM", re.MULTILINE)

_NO_MEMORY = re.compile(r"^Terminating due to java\.lang\.OutOfMemoryError", re.MULTILINE)

MOST_READ = 8 << 20
"""Maximum number of bytes read from a log. The logs' own smaller limits are enforced only inside the sandbox."""

LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${sys:headgate.log}
appender.file.filePattern = ${sys:headgate.log}.1
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601}{UTC} %p %c{1}: %m%n%ex
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 5MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
# What the executor says, a line each, and nothing of a member's own words: see says_that_a_task_does_not_stop.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = warn
logger.executor.appenderRef.tasks.ref = tasks
appender.tasks.type = RollingFile
appender.tasks.name = tasks
appender.tasks.fileName = ${sys:headgate.log}.tasks
appender.tasks.filePattern = ${sys:headgate.log}.tasks.1
appender.tasks.filter.errors.type = ThresholdFilter
appender.tasks.filter.errors.level = error
appender.tasks.layout.type = PatternLayout
appender.tasks.layout.pattern = %enc{%m}{CRLF}%n
appender.tasks.layout.alwaysWriteExceptions = false
appender.tasks.policies.type = SizeBasedTriggeringPolicy
appender.tasks.policies.size = 1MB
appender.tasks.strategy.type = DefaultRolloverStrategy
appender.tasks.strategy.max = 1
# Each refusal and each mistake in a statement is a warning with a whole stack here, and no news.
logger.connect.name = org.apache.spark.sql.connect
logger.connect.level = off
"""


def arguments(
    *,
    memory: str,
    classes: Sequence[str],
    conf: Conf,
    scratch: str,
    main: str = CONNECT,
    options: Sequence[str] = (),
) -> str:
    """The content of a file for `java @FILE`, so that the arguments are not visible in process lists."""
    given = [
        f"-Xmx{memory}",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        f"-XX:ErrorFile={scratch}/crash.log",
        f"-Xlog:gc:file={scratch}/gc.log::filecount=1,filesize=1m",
        *options,
        *MODULES,
        "-Duser.timezone=UTC",
        "-Dfile.encoding=UTF-8",
        "-Djava.net.preferIPv4Stack=true",
        f"-Djava.io.tmpdir={scratch}/tmp",  # noqa: S108 - in a folder of its own
        f"-Dheadgate.log={scratch}/server.log",
        f"-Dlog4j2.configurationFile={scratch}/log4j2.properties",
        *(f"-D{key}={value}" for key, value in sorted(conf.items())),
        "-cp",
        ":".join(classes),
        main,
    ]
    return "".join(f"{_quoted(option)}\n" for option in given)


FAIR = """\
<?xml version="1.0"?>
<allocations><pool name="default">
<schedulingMode>FAIR</schedulingMode><minShare>0</minShare><weight>1</weight>
</pool></allocations>
"""


def lay_out(scratch: Path) -> None:
    """Create the folders and files that a server expects in its scratch folder."""
    for name in ("local", "tmp"):
        (scratch / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    (scratch / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
    (scratch / "fair.xml").write_text(FAIR, encoding="utf-8")


def heap_after_collection(scratch: Path) -> int:
    """The bytes in use after the last garbage collection; 0 if there was none."""
    for line in reversed(read_tail(scratch / "gc.log").splitlines()):
        _, arrow, rest = line.partition("M->")
        if arrow and rest.partition("M")[0].isdigit():
            return int(rest.partition("M")[0]) << 20
    return 0


def has_stuck_task(scratch: Path) -> bool:
    """Whether Spark gave up on a task that ignored its interruption. In a separate executor process, Spark would end
    the process.
    """
    return _NOT_STOPPED.search(read_tail(scratch / "server.log.tasks")) is not None


def has_out_of_memory_line(scratch: Path) -> bool:
    """Whether Java exited because it ran out of memory: see -XX:+ExitOnOutOfMemoryError."""
    return _NO_MEMORY.search(read_tail(scratch / "output.log")) is not None


def read_tail(file: Path) -> str:
    """The end of a file that was written in a sandbox; empty if there is none. Links and pipes are not followed.

    This process may have more rights than the sandbox, so it must neither read another file for it nor block.
    """
    try:
        with untrusted_files.opened(file) as source:
            source.seek(max(os.fstat(source.fileno()).st_size - MOST_READ, 0))
            return source.read(MOST_READ).decode("utf-8", errors="replace")
    except (OSError, untrusted_files.NotRegularFile):
        return ""


def _quoted(option: str) -> str:
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'
