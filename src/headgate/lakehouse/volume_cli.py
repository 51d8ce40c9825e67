"""`headgate volume`: volumes of the lakehouse, and the files in them."""

import typer

from headgate.lakehouse import files_cli

app = typer.Typer(help="Volumes, and the files in them.", no_args_is_help=True, rich_markup_mode=None)
files_cli.add_to(app)
