"""The operations of the API that choose a language model: read, change, find, list, test."""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from types import ModuleType
from typing import Final

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from narratoria.agent import chosen_model
from narratoria.agent.adapters.adapter import ModelFailed
from narratoria.agent.chosen_model import ChoiceInvalid, ModelChoice, usual
from narratoria.errors import NarratoriaError
from narratoria.extras import absent, needed
from narratoria.web.catalogues import in_words_of
from narratoria.web.games import Games
from narratoria.web.json_responses import json_response
from narratoria.web.model_documents import (
    FoundServer,
    ModelChange,
    ModelList,
    ModelPreset,
    ModelTrial,
    ModelView,
    ServerAsked,
)
from narratoria.web.openapi import Operation
from narratoria.web.request_reading import body_of, unless_left


class ModelApi:
    """The operations about the model. A key comes in, and is never given out."""

    def __init__(self, games: Games) -> None:
        self.games = games

    async def model(self, request: HttpRequest) -> Response:
        return json_response(await asyncio.to_thread(_view))

    async def choose_model(self, request: HttpRequest) -> Response:
        asked = await body_of(request, ModelChange)
        await asyncio.to_thread(chosen_model.choose, _choice(asked), asked.key)
        self.games.use_chosen_model()
        return json_response(await asyncio.to_thread(_view))

    async def forget_model(self, request: HttpRequest) -> Response:
        await asyncio.to_thread(chosen_model.forget)
        self.games.use_chosen_model()
        return Response(status_code=204)

    async def find_models(self, request: HttpRequest) -> Response:
        model_servers = await _servers()
        found = await unless_left(request, model_servers.find())
        return json_response(
            [
                FoundServer(
                    preset=one.preset.name,
                    title=one.preset.title,
                    address=one.preset.address,
                    models=list(one.models),
                    wants_key=one.wants_key,
                )
                for one in found
            ]
        )

    async def list_models(self, request: HttpRequest) -> Response:
        model_servers = await _servers()
        asked = await body_of(request, ServerAsked)
        wanted, key = await asyncio.to_thread(_checked, asked)
        try:
            listing = await unless_left(request, model_servers.list_models(wanted.address, key))
        except ModelFailed as error:
            wrong = model_servers.what_is_wrong(error, wanted, key)
            says, advice = (in_words_of(request.headers, words) for words in (wrong.says, wrong.advice))
            return json_response(ModelList(problem=wrong.problem or "", says=says, advice=advice))
        return json_response(ModelList(models=list(listing.models), left_out=listing.left_out))

    async def test_model(self, request: HttpRequest) -> Response:
        model_servers = await _servers()
        asked = await body_of(request, ServerAsked)
        wanted, key = await asyncio.to_thread(_checked, asked)
        trial = await unless_left(request, model_servers.try_model(wanted, key))
        return json_response(
            ModelTrial(
                ok=trial.problem is None,
                seconds=trial.seconds,
                words=trial.words,
                streamed=trial.streamed,
                input_tokens=trial.input_tokens,
                output_tokens=trial.output_tokens,
                problem=trial.problem or "",
                says=in_words_of(request.headers, trial.says),
                advice=in_words_of(request.headers, trial.advice),
            )
        )


def _view() -> ModelView:
    problem = ""
    try:
        chosen = chosen_model.choice()
    except ChoiceInvalid as error:
        chosen, problem = None, str(error)
    presets = [ModelPreset(name=one.name, title=one.title, address=one.address) for one in usual()]
    environment = _from_environment(has_choice=chosen is not None)
    missing = needed("llm") if absent("llm") else ""
    if chosen is None:
        return ModelView(environment=environment, missing=missing, problem=problem, presets=presets)
    return ModelView(
        address=chosen.address,
        model=chosen.model,
        preset=chosen.preset,
        key=chosen.key,
        timeout=chosen.timeout,
        input_price=chosen.input_price,
        output_price=chosen.output_price,
        environment=environment,
        missing=missing,
        presets=presets,
    )


def _from_environment(*, has_choice: bool) -> str:
    """Return the variable by which the environment names the model to use, or ""."""
    names = (chosen_model.URL,) if has_choice else (chosen_model.URL, "OPENAI_BASE_URL", "OPENAI_API_KEY")
    return next((name for name in names if os.environ.get(name)), "")


def _choice(asked: ServerAsked) -> ModelChoice:
    prices = asked if isinstance(asked, ModelChange) else None
    return chosen_model.checked(
        ModelChoice(
            address=asked.address,
            model=asked.model,
            preset=asked.preset,
            timeout=asked.timeout,
            input_price=prices.input_price if prices else 0.0,
            output_price=prices.output_price if prices else 0.0,
        )
    )


def _checked(asked: ServerAsked) -> tuple[ModelChoice, str | None]:
    """Return the server to ask, and the key for it: the one entered, or the one that is kept for it alone."""
    wanted = _choice(asked)
    if asked.key is None:
        return wanted, chosen_model.key_for(wanted.address)
    return wanted, chosen_model.checked_key(asked.key) if asked.key else None


async def _servers() -> ModuleType:
    """Return the module that asks servers. It needs the extra `llm`, and takes a moment to load."""
    if absent("llm"):
        raise NarratoriaError(f"a language model {needed('llm')}")
    return await asyncio.to_thread(import_module, "narratoria.agent.model_servers")


MODEL_OPERATIONS: Final = (
    Operation(
        "GET", "/model", "model", "The language model a person chose, without its key", answer=ModelView
    ),
    Operation("PUT", "/model", "choose_model", "Use this model from now on", ModelChange, ModelView),
    Operation("DELETE", "/model", "forget_model", "Forget the model and its key", status=204),
    Operation(
        "POST", "/model/find", "find_models", "Look for servers of models on this computer",
        answer=list[FoundServer],
    ),
    Operation("POST", "/model/list", "list_models", "The models of a server", ServerAsked, ModelList),
    Operation(
        "POST", "/model/test", "test_model", "Ask a model for a sentence: how long it takes, or what is wrong",
        ServerAsked, ModelTrial,
    ),
)  # fmt: skip
