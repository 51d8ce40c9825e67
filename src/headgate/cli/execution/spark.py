"""`headgate doctor` and `headgate spark`: check the requirements, and print the configuration for an external Spark
server.
"""

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from headgate.cli.commands import command
from headgate.cli.output import FAILED, Json, handle_errors, print_json, print_table

app = typer.Typer(help="The Spark servers that run SQL and pipelines.", no_args_is_help=True, rich_markup_mode=None)


@handle_errors
def doctor(
    start: Annotated[bool, typer.Option("--start", help="Also start Spark as a worker does, and run a query.")] = False,
    as_json: Json = False,
) -> None:
    """Check that this machine meets the requirements of Headgate. Each line is ok or says what to do. Exits 1 if a
    requirement is missing. Always checks the local installation, whatever server HEADGATE_SERVER_URL names.
    """
    from headgate.cli.local import describe_installation, other_server_warning
    from headgate.execution.spark.doctor import DoctorFinding, findings, local_url, platform, spark
    from headgate.settings.settings import load

    settings = load()
    result = [DoctorFinding("installation", "note", describe_installation(settings))]
    if other := other_server_warning(settings):
        result.append(DoctorFinding("installation", "note", other))
    result += findings(settings)
    if start or settings.spark.member_url is not None:
        result.append(spark(settings, f"{local_url(settings)}/iceberg"))
    if settings.spark.platform_url is not None:
        result += platform(settings, f"{local_url(settings)}/iceberg")
    if as_json:
        print_json([asdict(finding) for finding in result])
    else:
        print_table(("what", "state", "detail"), [(finding.name, finding.state, finding.detail) for finding in result])
    if any(finding.state == "wrong" for finding in result):
        raise typer.Exit(FAILED)


@command(app, "conf")
def show_conf(
    catalog_url: Annotated[
        str | None,
        typer.Option(help="The catalog URL that Spark can reach. Default: the server's public URL."),
    ] = None,
    platform: Annotated[
        bool, typer.Option("--platform", help="For a second Spark server, which runs the platform's own steps.")
    ] = False,
) -> None:
    """Print the configuration that an external Spark server needs to run members' SQL, in the format of
    spark-defaults.conf. Always uses the local installation, whatever server HEADGATE_SERVER_URL names.
    """
    from headgate.cli.local import describe_installation, other_server_warning
    from headgate.execution.spark import conf, jars
    from headgate.execution.spark.doctor import local_url
    from headgate.settings.settings import load

    settings = load()
    url = catalog_url or f"{(settings.server.public_url or local_url(settings)).rstrip('/')}/iceberg"
    is_bucket = settings.warehouse_url.startswith("s3://")
    result = jars.ensure(offline=settings.spark.jars_dir, s3=is_bucket, platform=platform)
    if other := other_server_warning(settings):
        print(f"note: {other}", file=sys.stderr)
    print(f"# Installation: {describe_installation(settings)}. Catalog: {url}")
    name = "spark.platform_url" if platform else "spark.member_url"
    print(
        "# Start a server that only Headgate can connect to: SPARK_CONNECT_AUTHENTICATE_TOKEN=… spark-submit --master …"
    )
    print(f"#   --driver-memory 4g --properties-file THIS-FILE --class {conf.CONNECT} spark-internal")
    print(f"# Then set {name} = sc://HOST:PORT/;token=…")
    confs = conf.for_platform(url) if platform else conf.for_members(url)
    for key, value in {"spark.jars": str(result), **confs}.items():
        print(f"{key} {value}")
