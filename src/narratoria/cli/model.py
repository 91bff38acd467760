"""`narratoria model`: choose the language model that tells stories, as Settings of the page do."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import click
import msgspec

from narratoria.agent import chosen_model
from narratoria.agent.chosen_model import PRESETS, SECONDS, ModelChoice, usual
from narratoria.cli import FAILED
from narratoria.cli.output import console, print_json, styled
from narratoria.errors import NarratoriaError
from narratoria.extras import absent, needed

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(invoke_without_command=True)
@_json
@click.pass_context
def model(context: click.Context, as_json: bool) -> int:
    """Choose the language model that tells stories; alone, show the one that is chosen.

    The key is kept in the system's keyring, or in a file that only you may open. It is never shown.
    """
    if context.invoked_subcommand is not None:
        return 0
    chosen, set_outside = chosen_model.choice(), chosen_model.URL in os.environ
    if as_json:
        print_json(
            {"model": None if chosen is None else msgspec.to_builtins(chosen), "environment": set_outside}
        )
        return 0
    if chosen is None:
        click.echo("no model is chosen; narratoria model find looks for one on this computer", err=True)
    else:
        _show(chosen)
    if set_outside:
        click.echo(f"{chosen_model.URL} is set, and is used in its place", err=True)
    return 0


@model.command()
@_json
def find(as_json: bool) -> int:
    """Look for servers of models on this computer."""
    _check_installed()
    from narratoria.agent import model_servers  # needs the extra `llm`

    found = asyncio.run(model_servers.find())
    if as_json:
        print_json(
            [
                {"server": one.preset.name, "address": one.preset.address, "models": one.models}
                for one in found
            ]
        )
        return 0
    for one in found:
        listed = ", ".join(one.models[:20]) or ("it wants a key" if one.wants_key else "it has no model yet")
        console().print(
            styled((one.preset.title, "bold cyan"), (f"  {one.preset.address}  ", "dim"), (listed, ""))
        )
    if not found:
        titles = ", ".join(one.title for one in PRESETS[:-1])
        click.echo(f"none of {titles} answers on this computer", err=True)
    return 0 if found else FAILED


@model.command()
@click.argument("address")
@click.option("--model", "name", default="", help="Its name; may be left out where the server has only one.")
@click.option(
    "--key", "asks_key", is_flag=True, help="Ask for the key; from a pipe, read it from standard input."
)
@click.option("--timeout", default=SECONDS, show_default=True, help="Seconds for one answer.")
@click.option(
    "--price", nargs=2, type=float, default=(0.0, 0.0), metavar="IN OUT",
    help="Dollars for a million tokens, read and written.",
)  # fmt: skip
def use(address: str, name: str, asks_key: bool, timeout: float, price: tuple[float, float]) -> int:
    """Use the model at ADDRESS: an OpenAI-compatible server, or the name of a preset such as ollama."""
    preset = next((one for one in usual() if address in (one.name, one.title)), None)
    wanted = chosen_model.checked(
        ModelChoice(
            address=preset.address if preset else address,
            model=name,
            preset=preset.name if preset else "",
            timeout=timeout,
            input_price=price[0],
            output_price=price[1],
        )
    )
    key = _read_key() if asks_key else None
    _show(chosen_model.choose(wanted, key))
    return 0


@model.command()
@_json
def test(as_json: bool) -> int:
    """Ask the chosen model for a sentence."""
    _check_installed()
    from narratoria.agent import model_servers

    chosen = chosen_model.choice()
    if chosen is None:
        raise NarratoriaError("no model is chosen; choose one with: narratoria model use ADDRESS")
    trial = asyncio.run(model_servers.try_model(chosen, chosen_model.key_for(chosen.address)))
    if as_json:
        print_json(msgspec.to_builtins(trial))
    elif trial.problem is not None:
        raise NarratoriaError(" ".join(filter(None, (trial.says, trial.advice))))
    else:
        console().print(styled((f"answered in {trial.seconds:.1f} s: ", "dim"), (trial.words, "")))
    return FAILED if trial.problem else 0


@model.command()
def forget() -> int:
    """Forget the model and its key."""
    chosen_model.forget()
    click.echo("forgotten", err=True)
    return 0


def _show(chosen: ModelChoice) -> None:
    places: dict[Any, str] = {"keyring": "key in the keyring", "file": "key in a file of yours", "": "no key"}
    name = chosen.model or "its only model"
    console().print(
        styled((name, "bold cyan"), (f"  {chosen.address}", ""), (f"  {places[chosen.key]}", "dim"))
    )


def _read_key() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Key", hide_input=True, default="", show_default=False))
    return sys.stdin.readline().strip()


def _check_installed() -> None:
    if absent("llm"):
        raise NarratoriaError(f"a language model {needed('llm')}")
