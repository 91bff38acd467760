"""Descriptions of the keys of a story's files, `story.toml` and `narrator.toml`, and an example of each."""

from __future__ import annotations

from typing import Final

TITLES: Final = {
    "Story": "The file `story.toml` of a story. Beyond this schema: the tools and files that it names exist, "
    "and a cover has a picture or a tool, not both.",
    "Opening": "The table `[opening]`: what is told before the first prompt.",
    "Cover": "The table `[cover]`: a picture in the story's folder, or a tool that draws one.",
    "Panel": "A table `[[panel]]`: a part of the panel beside the story, which follows the state.",
    "Fact": "A line of a part of the kind `facts`.",
    "Server": "A table `[mcp.NAME]`, or a server of an `mcpServers` file: a program with `command`, or an address with "
    "`url`. Keys of other hosts are ignored.",
    "Api": "A table `[openapi.NAME]`: an OpenAPI document, whose operations are tools `NAME.operation`.",
    "ServerSettings": "The key `narratoria` of a server: our own settings for it.",
    "ToolSettings": "Settings of one tool of a server; the keys are those of a manifest.",
    "Rules": "The file `narrator.toml`: the rules of a story. Beyond this schema: each rule has an id of its own, "
    "patterns and conditions can be read, `{slots}` name groups of the patterns, and `after` names an earlier call.",
    "Rule": "A table `[[rule]]`: what the player may type, what is told, and which tools are called.",
    "Case": "A table `[[rule.cases]]`: what a rule says and does in one situation. It inherits what the rule says.",
    "RuleCall": "One call of a rule: a tool and its input.",
    "Language": "The table `[language]`: small words that do not count, for a language other than English.",
}

_CASE: Final = {
    "when": "The condition on the state (and on `said.GROUP`) under which it is used.",
    "narrative": "What is told; a list gives another one each turn.",
    "then": "Told instead of `narrative` when the action follows another in the same prompt.",
    "instead": "Told instead of `narrative` when another action of the prompt could not be done.",
    "unavailable": "Told when a tool that it needs has failed and is out of use.",
    "calls": "The calls of tools.",
    "set": "A patch of the state, without a tool of your own (`tools/stage` carries it out).",
    "choices": "Choices to offer, without a tool of your own (`tools/stage` carries it out).",
    "expect": "The state that the calls will leave, so that the next action of the same prompt can rely on it.",
    "finally": "Whether the calls of `[[finally]]` follow.",
}

FIELDS: Final = {
    "Story.id": "The story's name for programs: small letters, digits, - and _. Left out: the folder's name.",
    "Story.title": "The story's name for people.",
    "Story.author": "Who wrote it.",
    "Story.premise": "What the story is about; shown before it is begun, and told to a model.",
    "Story.note": "Words of the author to the player, outside the story.",
    "Story.language": "The language it is told in, as a tag: en, pt-BR.",
    "Story.narrator": "The narrators, in the order in which they are asked.",
    "Story.permissions": "Permissions that are granted to the story's tools.",
    "Story.approval": "Which calls a person must approve before they run: `always`, `irreversible` or `never` for all "
    "tools, or a table `[approval]` with a rule for each tool by its name, and `default` for the others.",
    "Story.opening": "What is told before the first prompt.",
    "Story.cover": "The picture of the story.",
    "Story.state": "The state at the beginning. A date is written as a string.",
    "Story.panel": "The panel beside the story, in parts.",
    "Story.go_on": "Said to narrators where the player lets the story go on; “wait” in English, with rules.",
    "Story.refusal": "Told where nothing in the story can do what the player means; of a list, one after the other.",
    "Story.free_tools": "Tools of the rules that the narrators `local` and `llm` may call by themselves too.",
    "Story.resources": "What the story's tools need of the machine they run on: a table each, `[resources.TOOL]`, with "
    "the keys of a manifest. Such a tool runs on a Ray cluster.",
    "Story.mcp": "MCP servers, whose tools are the story's too: a file in its folder, or a table each, `[mcp.NAME]`.",
    "Story.skills": "Skills it uses beside those in its own folder: a list of names, or a table of settings each, "
    "`[skills.NAME]`.",
    "Story.openapi": "OpenAPI documents, whose operations are the story's tools too: one document in its folder, or a "
    "table each, `[openapi.NAME]`.",
    "Api.spec": "The document: a file in the story's folder, or an address.",
    "Api.url": "The address of the API; left out: the document's own server.",
    "Api.secrets": "By security scheme of the document: the environment variable that holds the secret.",
    "Api.headers": "Headers of each request; `${VAR}` keeps secrets out of the file.",
    "Api.only": "The only operations to take, by their `operationId`; left out: all.",
    "Api.timeout": "Seconds that one call may take, with all its waits.",
    "Api.retries": "How often a request that may be repeated is repeated.",
    "Api.permissions": "Permissions that must be granted for each of its tools.",
    "Api.tools": "Settings of single operations, by their `operationId`.",
    "Opening.narrative": "What is told first.",
    "Opening.choices": "What the player may choose at first.",
    "Cover.picture": "A picture: a file inside the story's folder.",
    "Cover.alt": "The picture in words, for those who do not see it.",
    "Cover.tool": "The tool of `tools/` that draws the picture.",
    "Cover.input": "The input of that tool.",
    "Panel.kind": "`place`: a text of the state with the newest picture made there; `things`: the entries of a table "
    "or list; `facts`: lines that are shown while they hold; `moments`: named moments and branches; `endings`: those "
    "found.",
    "Panel.label": "The heading.",
    "Panel.path": "Where the text or the things are in the state: `place.title`.",
    "Panel.labels": "Words for the keys of `things`; left out: the text that is there, or the key.",
    "Panel.facts": "The lines of a part of the kind `facts`.",
    "Panel.endings": "The endings there are: the title of each by its id. Titles are shown once they are found.",
    "Panel.empty": "What it says while there is nothing to show; left out: the part is not shown then.",
    "Fact.label": "The line.",
    "Fact.when": "The state under which it is shown: values, `{ exists = true }` or `{ missing = true }`, all of which "
    "must hold.",
    "Server.command": "The program that is the server.",
    "Server.args": "Its arguments. `${VAR}` and `${VAR:-default}` stand for variables of the environment.",
    "Server.env": "Variables of its environment.",
    "Server.cwd": "The folder it runs in; left out: the story's folder, or the present one.",
    "Server.url": "The address of a server that is reached over HTTP.",
    "Server.headers": "Headers of each request; `${VAR}` keeps secrets out of the file.",
    "Server.type": "The transport; left out: stdio for a command, http for a url.",
    "Server.disabled": "Whether the server is left out.",
    "Server.narratoria": "Our own settings for it.",
    "ServerSettings.startTimeout": "Seconds it may take to start.",
    "ServerSettings.timeout": "Seconds that one call of any of its tools may take.",
    "ServerSettings.permissions": "Permissions that must be granted for each of its tools.",
    "ServerSettings.tools": "Settings of single tools, by the server's own names for them.",
    "ServerSettings.only": "The only tools to take, by the server's own names; left out: all.",
    "ToolSettings.effects": "What follows after a call that succeeded; left out: what it did stays at an undo.",
    "Rules.language": "Small words of another language.",
    "Rules.words": "Lists of phrases by name; a pattern names one as `<name>`.",
    "Rules.stage": "The tool that carries out `set` and `choices`.",
    "Rules.finally": "Calls that every plan ends with.",
    "Rules.rule": "The rules; the first one that fits answers.",
    "Rules.unavailable": "Told when a tool has failed, for rules that say nothing of their own.",
    "Rules.confirm": "Told before a careful action that was asked for in other words.",
    "Rules.unclear": "Told where it is not certain which of the `{choices}` is meant.",
    "Rules.unanswered": "Told to a question that no rule answers.",
    "Rules.undone": "Told of the `{rest}` of a prompt that was understood in part.",
    **{f"Case.{key}": text for key, text in _CASE.items()},
    **{f"Rule.{key}": text for key, text in _CASE.items()},
    "Rule.id": "The rule's name, once per file.",
    "Rule.patterns": "What the player may type.",
    "Rule.independent": "Whether it does not wait for the action before it in the prompt.",
    "Rule.fallback": "Whether it speaks only when no other rule fits, by words or by meaning.",
    "Rule.careful": "Whether what it does cannot be undone: it is never done on a guess.",
    "Rule.offer": "The words in which the story offers it, or asks if it is meant; its patterns fit them.",
    "Rule.cases": "The situations; the first whose `when` holds is used.",
    "RuleCall.told": "Told of its result in place of the tool's summary; nothing if empty.",
    "RuleCall.tool": "The tool: its name, `server.tool`, `skill.script`, or a path below the story's folder.",
    "RuleCall.id": "The call's name in the rule; left out: the tool's.",
    "RuleCall.input": "The input; strings may hold `{group}` and `{state.path}`.",
    "RuleCall.after": "The calls of the same rule that must end first.",
    "RuleCall.required": "Whether the plan fails when this call does.",
    "RuleCall.retries": "Attempts after the first.",
    "RuleCall.backoff_ms": "Milliseconds before the first retry; each further wait is twice as long.",
    "Language.articles": "Words that do not count anywhere: the, a, an.",
    "Language.lead": "Phrases that do not count at the beginning: I would like to.",
    "Language.trail": "Phrases that do not count at the end: please.",
    "Language.joins": "Words that join two actions: and, then.",
}

STORY_EXAMPLE: Final = {
    "id": "torch",
    "title": "The Torch and the Door",
    "premise": "A passage, a torch on the wall, and a door nobody has opened.",
    "narrator": ["rules", "template"],
    "opening": {"narrative": "The passage ends at a door.", "choices": ["Light the torch"]},
    "state": {"place": {"id": "passage", "title": "in the passage"}},
}

RULES_EXAMPLE: Final = {
    "rule": [
        {
            "id": "light-torch",
            "patterns": ["(light|ignite) torch"],
            "narrative": "You reach for the torch on the wall.",
            "calls": [{"id": "light", "tool": "torch-lighter", "input": {"action": "light_torch"}}],
        }
    ]
}
