"""`headgate doctor` and `headgate spark`: what this machine lacks, and what an operator's own Spark must be told."""

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from headgate.cli.output import FAILED, Json, print_json, print_table, told

app = typer.Typer(help="The Spark servers that run the data work.", no_args_is_help=True, rich_markup_mode=None)


@told
def doctor(
    start: Annotated[bool, typer.Option("--start", help="Also start Spark, as a worker does, and try it.")] = False,
    as_json: Json = False,
) -> None:
    """Look whether this machine has all that Headgate needs; each line is ok, or says what to do. Exit 1 if not.

    It looks at this machine's own installation, whatever server HEADGATE_SERVER_URL names.
    """
    from headgate.cli.local import elsewhere, place_of
    from headgate.execution.spark.doctor import DoctorFinding, findings, local_url, platform, spark
    from headgate.settings.settings import load

    settings = load()
    result = [DoctorFinding("installation", "note", place_of(settings))]
    if other := elsewhere(settings):
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


@app.command("conf")
@told
def show_conf(
    catalog_url: Annotated[
        str | None,
        typer.Option(help="The catalog's address as your Spark reaches it. Left out, the server's public one."),
    ] = None,
    platform: Annotated[
        bool, typer.Option("--platform", help="For a second server, which runs the platform's own steps.")
    ] = False,
) -> None:
    """Print the settings that a Spark server of yours needs to run members' SQL, as in spark-defaults.conf.

    They are of this machine's own installation, whatever server HEADGATE_SERVER_URL names.
    """
    from headgate.cli.local import elsewhere, place_of
    from headgate.execution.spark import conf, jars
    from headgate.execution.spark.doctor import local_url
    from headgate.settings.settings import load

    settings = load()
    url = catalog_url or f"{(settings.server.public_url or local_url(settings)).rstrip('/')}/iceberg"
    is_bucket = settings.warehouse_url.startswith("s3://")
    result = jars.ensure(offline=settings.spark.jars_dir, s3=is_bucket, platform=platform)
    if other := elsewhere(settings):
        print(f"note: {other}", file=sys.stderr)
    print(f"# Of this installation: {place_of(settings)}; its catalog is {url}")
    name = "spark.platform_url" if platform else "spark.member_url"
    print("# For a server that only Headgate can dial. SPARK_CONNECT_AUTHENTICATE_TOKEN=… spark-submit --master …")
    print(f"#   --driver-memory 4g --properties-file THIS-FILE --class {conf.CONNECT} spark-internal")
    print(f"# starts it; then give Headgate {name} = sc://HOST:PORT/;token=…")
    confs = conf.for_platform(url) if platform else conf.for_members(url)
    for key, value in {"spark.jars": str(result), **confs}.items():
        print(f"{key} {value}")
