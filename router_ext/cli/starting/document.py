"""The text of a first ``router.yaml``: what was found, and what one may want next as comments.

A comment like ``# key: value`` is a setting: it is valid once its ``# `` is taken away.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from router_ext.cli.starting.engines import Engine, Model
from router_ext.cli.starting.providers import Key
from router_ext.model.backend import BackendType

_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARS: Final = 63

_HEAD: Final = """\
# Configuration of router_ext, written by `router-ext init`. The router takes a change over within five seconds.
# Check it with `router-ext check-config`. To switch on what stands in a comment like "# key: value", remove the "# ".
# All keys and their defaults: docs/reference/configuration.md

server:
  # Where clients send their requests.
  # port: 8050
  # Keep a conversation on the engine that has its beginning in the cache; for engines that serve the same model.
  # kv_pinning: {enabled: true}
  # Prefer engines with short queues, by their metrics pages.
  # queue_aware_routing: true
  # Keep conversations in the router, so that clients send the new message only.
  # sessions: {enabled: true}

backends:
"""

_EXAMPLE: Final = """\
  # Nothing was found, so this is an example: put in where your engine listens, its type (vllm, sglang, llamacpp,
  # ollama or openai), and what it calls its model.
  - name: example
    url: "http://127.0.0.1:8000"
    type: vllm
    model_name: my-model
"""

_TAIL: Final = """\
  # Ask another backend when a stream has no first token after this time.
  # first_token_timeout: 20s

# Limits of what a service spends a day; needs cost_input_1m and cost_output_1m at the backends.
# budgets: {default: {daily_limit_usd: 20}}

# Limits of how much a service sends, for each service.
# rate_limits: {default: {requests_per_second: 20, burst_size: 40}}
"""


def configuration(engines: Sequence[Engine], keys: Sequence[Key]) -> str:
    """The text. Providers serve models that are asked for by a name of theirs; everything only where no engine is."""
    names: list[str] = []
    entries = [_entry(engine, model, names) for engine in engines for model in engine.models]
    chain = list(names)
    entries += [_provider_entry(key, names) for key in keys]
    if not names:
        names.append("example")
        entries = [_EXAMPLE]
    locked = [_locked_entry(engine) for engine in engines if engine.wants_key]
    return "".join(
        (_HEAD, *entries, *locked, _rules(keys, names[0]), _chain(chain or names, bool(chain and keys)), _TAIL)
    )


def _entry(engine: Engine, model: Model, names: list[str]) -> str:
    fields = [
        ("name", _new_name(_base_name(engine, model), names)),
        ("url", _quoted(f"http://{engine.place}")),
        ("type", engine.type.value),
        ("model_name", _quoted(model.name)),
    ]
    fields += [("aliases", _listed(model.aliases))] if model.aliases else []
    fields += [("lora_adapters", _listed(model.adapters))] if model.adapters else []
    fields += [("capabilities", "[vision]")] if engine.vision else []
    if engine.slots is not None:
        fields.append(("max_concurrent", f"{engine.slots}  # as many as it answers at a time"))
    return _item(fields)


def _provider_entry(key: Key, names: list[str]) -> str:
    provider = key.provider
    fields = [
        ("name", _new_name(provider.name, names)),
        ("url", _quoted(provider.url)),
        ("type", provider.type.value),
        ("model_name", f"{_quoted(provider.model)}  # put in the one that you use"),
        ("api_key", f"env:{key.variable}"),
    ]
    prices = "    # US dollars per 1,000,000 tokens, by the provider's list.\n"
    return _item(fields) + prices + "    # cost_input_1m: 0\n    # cost_output_1m: 0\n"


def _locked_entry(engine: Engine) -> str:
    """As a comment: without its key there is no model to name."""
    name = _base_name(engine, None)
    lines = (
        f"{_title(engine.type)} at {engine.place} tells its models only to those who have its key.",
        "To use it, put the key into the environment, and the name of the model here:",
        f"- name: {name}",
        f"  url: {_quoted(f'http://{engine.place}')}",
        f"  type: {engine.type.value}",
        "  model_name: my-model",
        f"  api_key: env:{re.sub('[^A-Za-z0-9]', '_', name).upper()}_API_KEY",
    )
    return "".join(f"  # {line}\n" for line in lines)


def _rules(keys: Sequence[Key], first: str) -> str:
    if not keys:
        rule = f"{{name: premium, match: {{service: premium}}, backends: [{_quoted(first)}]}}"
        return f"\n# Where requests of a service go that says its name in x-kronaxis-service.\n# rules: [{rule}]\n"
    lines = ["\nrules:\n", "  # A model of a provider, asked for by its name.\n"]
    for provider in (key.provider for key in keys):
        match = f"{{model: {_quoted(provider.pattern)}}}"
        lines.append(f"  - {{name: {provider.name}, match: {match}, backends: [{provider.name}]}}\n")
    return "".join(lines)


def _chain(names: Sequence[str], beside_keys: bool) -> str:
    why = "  # Where no rule applies, in this order.\n"
    if beside_keys:
        why += "  # Providers are not in it: requests leave this machine, and cost money, only by a rule.\n"
    return f"\ndefaults:\n{why}  fallback_chain: [{', '.join(_quoted(name) for name in names)}]\n"


def _base_name(engine: Engine, model: Model | None) -> str:
    """Of its type and port; of its model where it serves several, and of its host where that is another machine."""
    parts = [engine.type.value]
    if engine.place.host not in ("127.0.0.1", "localhost", "::1"):
        parts.append(engine.place.host)
    parts.append(str(engine.place.port))
    if model is not None and len(engine.models) > 1:
        parts.append(model.name)
    return _UNNAMEABLE.sub("-", "-".join(parts))


def _new_name(base: str, taken: list[str]) -> str:
    """``base``, cut and with a number where that is needed; it is added to ``taken``."""
    name, number = base[:_NAME_CHARS], 1
    while name in taken:
        number += 1
        name = f"{base[: _NAME_CHARS - len(str(number)) - 1]}-{number}"
    taken.append(name)
    return name


def _item(fields: Iterable[tuple[str, str]]) -> str:
    lines = [f"{key}: {value}\n" for key, value in fields]
    return "  - " + "    ".join(lines)


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(_quoted(name) for name in names)}]"


def _quoted(text: str) -> str:
    """Printable ASCII in double quotes, with the escapes of JSON, which YAML shares."""
    return orjson.dumps(text).decode()


def _title(kind: BackendType) -> str:
    return {BackendType.VLLM: "vLLM", BackendType.LLAMACPP: "llama.cpp", BackendType.SGLANG: "SGLang"}.get(
        kind, kind.value.capitalize()
    )
