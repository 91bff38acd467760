"""`narratoria schema`: the contracts of the wire, for other languages and for editors."""

from __future__ import annotations

import click

from narratoria.cli.output import print_json
from narratoria.wire_schemas import CONTRACTS, text_of


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, of the YAML contract too.")
def schema(name: str | None, as_json: bool) -> int:
    """Print the contract NAME, or list them."""
    if name is None:
        _list(as_json)
        return 0
    found = next((short for short, (file, _) in CONTRACTS.items() if name in (short, file)), None)
    if found is None:
        raise click.BadParameter(f"there is no contract {name!r}; choose one of: {', '.join(CONTRACTS)}")
    if as_json:
        print_json(CONTRACTS[found][1]())
    else:
        click.echo(text_of(found), nl=False)
    return 0


def _list(as_json: bool) -> None:
    contracts = [{"name": name, "file": file} for name, (file, _) in CONTRACTS.items()]
    if as_json:
        print_json(contracts)
        return
    width = max(map(len, CONTRACTS))
    for one in contracts:
        click.echo(f"{one['name']:{width}}  {one['file']}")
    click.echo("\nPrint one with: narratoria schema NAME")
