"""Creates a Spark server on this machine, if the machine meets the requirements."""

from headgate.execution.sandbox import bubblewrap
from headgate.execution.spark import conf, guard_jar, jars, java, versions
from headgate.execution.spark.errors import SparkUnavailable
from headgate.execution.spark.platform_environment import ServerEnvironment
from headgate.execution.spark.server import LocalServer
from headgate.kit.log import get_logger
from headgate.settings.settings import Settings

_log = get_logger("headgate.engine")


def local_server(
    kind: str, settings: Settings, confs: conf.Conf, beside: ServerEnvironment | None = None
) -> LocalServer:
    """A server on this machine that is not started yet; SparkUnavailable says what is missing."""
    complaints = versions.complaints()
    if complaints:
        raise SparkUnavailable("; ".join(complaints))
    wanted = settings.spark.sandbox
    lacking = None if wanted == "off" else bubblewrap.missing(settings.spark.sandbox_uid)
    if lacking and wanted == "required":
        raise SparkUnavailable(f"spark.sandbox is `required`, and {lacking}")
    if lacking:
        _log.warning("a Spark server runs without a sandbox", kind=kind, why=lacking)
    try:
        s3 = settings.warehouse_url.startswith("s3://")
        result = jars.ensure(offline=settings.spark.jars_dir, s3=s3, platform=beside is not None)
        return LocalServer(kind, settings, result, confs, sandboxed=wanted != "off" and not lacking, beside=beside)
    except (jars.BadJar, guard_jar.BadBuild, java.NoJava) as error:
        raise SparkUnavailable(str(error)) from None
