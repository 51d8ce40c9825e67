"""Configuration of Spark servers: the guard for members' SQL, and the lakehouse catalog."""

CATALOG = "lake"
ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
GUARD = "headgate.guard.GuardExtensions"
PLUGIN = "headgate.guard.GuardPlugin"
INTERCEPTOR = "headgate.guard.ConnectInterceptor"
AUTHORIZATION = f"spark.sql.catalog.{CATALOG}.header.Authorization"
"""Set by each session with its own token, never for the whole server."""

TIME_ZONE = "spark.sql.session.timeZone"
LAYER = f"spark.sql.catalog.{CATALOG}.default-namespace"
USER = "headgate.user"
"""The user that the guard returns for `current_user()`. SQL cannot set this or the other settings."""
GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
CONNECT = "headgate.guard.ConnectServer"

Conf = dict[str, str]


def lake(catalog_url: str) -> Conf:
    """The configuration of the lakehouse catalog, without a token."""
    name = f"spark.sql.catalog.{CATALOG}"
    return {
        name: "org.apache.iceberg.spark.SparkCatalog",
        f"{name}.type": "rest",
        f"{name}.uri": catalog_url,
        # Otherwise a member whose access was revoked could continue to read for half a minute.
        f"{name}.cache-enabled": "false",
        # The session's own header is the token; with Iceberg's token handling, a closed session would not be freed.
        f"{name}.rest.auth.type": "none",
        f"{name}.rest-metrics-reporting-enabled": "false",
        "spark.sql.defaultCatalog": CATALOG,
    }


def guarded() -> Conf:
    """The configuration of the guard. The order of extensions matters: the last parser is the outermost."""
    return {
        "spark.sql.extensions": f"{ICEBERG},{GUARD}",
        "spark.plugins": PLUGIN,
        "spark.connect.grpc.interceptor.classes": INTERCEPTOR,
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.variable.substitute": "false",
        "spark.sql.analyzer.singlePassResolver.enabled": "false",
        "spark.sql.analyzer.singlePassResolver.enabledTentatively": "false",
    }


def common() -> Conf:
    """The configuration of every server."""
    return {
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|authorization",
        TIME_ZONE: "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.connect.progress.reportInterval": "500ms",
        # A task that ignores its interruption ends its process; for servers on this machine, see server.py.
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "20s",
        # A cached plan would not query the catalog again.
        "spark.connect.session.planCache.enabled": "false",
        "spark.sql.connect.serverStacktrace.enabled": "false",
        # Sessions are freed when they end; this frees those of a killed worker.
        "spark.connect.session.manager.defaultSessionTimeout": "15m",
    }


def acting(token: str, time_zone: str, user: str = "", layer: str | None = None) -> Conf:
    """The configuration of a session: its member, time zone and default layer."""
    values = {AUTHORIZATION: f"Bearer {token}", TIME_ZONE: time_zone}
    if user:
        values[USER] = user
    return {**values, LAYER: layer} if layer else values


def for_members(catalog_url: str) -> Conf:
    """The configuration of a server for members' SQL."""
    return {**common(), **lake(catalog_url), **guarded()}


def for_platform(catalog_url: str) -> Conf:
    """The configuration of a server for the platform's own steps."""
    return {**common(), **lake(catalog_url), "spark.sql.extensions": ICEBERG}


def for_notebook(catalog_url: str) -> Conf:
    """The configuration of a notebook's own Spark process."""
    return {
        **common(),
        **lake(catalog_url),
        "spark.sql.extensions": ICEBERG,
        "spark.hadoop.fs.defaultFS": "file:///",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def local(*, name: str, cores: int, heap: int, port: int, scratch: str) -> Conf:
    """Additional configuration of a local server, which listens on loopback only."""
    return {
        "spark.app.name": name,
        "spark.master": f"local[{cores}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.port.maxRetries": "0",
        "spark.local.dir": f"{scratch}/local",
        # A larger result must not crash the whole server.
        "spark.driver.maxResultSize": str(heap // 3),
        # Lets other statements use cores while a long one runs.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": f"file://{scratch}/fair.xml",
        "spark.sql.warehouse.dir": f"{scratch}/none",
    }
