"""In what form results are written."""

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
