"""The scripted tour of requests: what the router promises its clients, seen on the running demo, one line a step."""

import asyncio
import json
import signal
import time
from collections import Counter
from typing import Final

import aiohttp

from router_ext.demo.visitor import CHAT, Step, Visitor, chat, expect
from router_ext.model.headers import ATTEMPTS, BACKEND, CLUSTER, QUALITY, RESPONSE_SCHEMA, RULE, SERVICE, SESSION_ID

SCHEMA: Final = {
    "type": "object",
    "properties": {"polite": {"type": "boolean"}},
    "required": ["polite"],
    "additionalProperties": False,
}


async def plain_chat(visitor: Visitor) -> str:
    """A chat is answered by the first backend of the chain."""
    answer = await visitor.ask(CHAT, chat())
    content = answer.json()["choices"][0]["message"]["content"]
    expect(answer.status == 200 and answer.headers[BACKEND] == "engine-a", (answer.status, answer.headers))
    return f"200 from {answer.headers[BACKEND]} by rule {answer.headers[RULE]}, {len(content)} characters"


async def streamed_chat(visitor: Visitor) -> str:
    """A streamed chat arrives as server-sent events that end in [DONE]."""
    answer = await visitor.ask(CHAT, chat(stream=True))
    events = [line for line in answer.body.decode().splitlines() if line.startswith("data: ")]
    expect(answer.status == 200 and events[-1] == "data: [DONE]", (answer.status, answer.body[-200:]))
    return f"{len(events)} events, the last one [DONE]"


async def rule_by_service(visitor: Visitor) -> str:
    """A rule sends a service to the strong backend."""
    answer = await visitor.ask(CHAT, chat(), **{SERVICE: "premium"})
    expect((answer.headers.get(BACKEND), answer.headers.get(RULE)) == ("strong", "premium"), answer.headers)
    return "service premium went to strong by rule premium"


async def model_rewritten(visitor: Visitor) -> str:
    """The client's alias becomes the backend's model name."""
    answer = await visitor.ask(CHAT, chat(model="large"))
    expect(answer.headers.get(RULE) == "large-model" and answer.json()["model"] == "smollm2", answer.body[:200])
    return "model 'large' was sent to strong as 'smollm2'"


async def model_list(visitor: Visitor) -> str:
    """The model list comes from the configuration."""
    names = {card["id"] for card in (await visitor.ask("/v1/models")).json()["data"]}
    expect(names == {"smollm2", "small", "large"}, names)
    return ", ".join(sorted(names))


async def spill_over(visitor: Visitor) -> str:
    """A full backend passes its share on."""
    answers = await asyncio.gather(*(visitor.ask(CHAT, chat(max_tokens=24)) for _ in range(5)))
    used = Counter(answer.headers.get(BACKEND, f"status {answer.status}") for answer in answers)
    expect(set(used) == {"engine-a", "engine-b", "strong"}, used)
    return "5 at once: " + ", ".join(f"{name} {number}" for name, number in sorted(used.items()))


async def quality_gate(visitor: Visitor) -> str:
    """An answer that fits the schema passes; for prose the strong backend is asked, which writes prose as well."""
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    good = await visitor.ask(CHAT, chat(max_tokens=64, response_format=wanted))
    expect(good.headers.get(QUALITY) == "passed", (good.headers, good.body))
    prose = await visitor.ask(CHAT, chat(), **{RESPONSE_SCHEMA: json.dumps(SCHEMA)})
    expect((prose.headers.get(QUALITY), prose.headers.get(ATTEMPTS)) == ("failed", "2"), (prose.headers, prose.body))
    return "JSON that fits the schema passed; prose went to strong too, and was given as failed"


async def bad_request(visitor: Visitor) -> str:
    """A broken body gets a clear error."""
    answer = await visitor.ask(CHAT, b'{"model": "small", "messages": [')
    error = answer.json()["error"]
    expect(answer.status == 400 and error["code"] == "invalid_json", answer.body)
    return f"400 {error['code']}: {error['message']}"


async def forged_header(visitor: Visitor) -> str:
    """A client cannot choose the cluster."""
    answer = await visitor.ask(CHAT, chat(), **{CLUSTER: "backend-forged"})
    expect(answer.status == 200 and BACKEND in answer.headers, (answer.status, answer.headers))
    return f"{CLUSTER} from the client had no effect"


async def hot_reload(visitor: Visitor) -> str:
    """A change of the file is in force within five seconds."""
    config = visitor.stack.config
    before = config.read_text()
    config.write_text(
        before.replace(
            "match: {service: premium}, backends: [strong]", "match: {service: premium}, backends: [engine-b]"
        )
    )
    started = time.monotonic()

    async def moved() -> bool:
        return (await visitor.ask(CHAT, chat(), **{SERVICE: "premium"})).headers.get(BACKEND) == "engine-b"

    await visitor.stack.until("the new rule", moved, patience_s=5.0)
    config.write_text(before)
    return f"new rule in force after {time.monotonic() - started:.1f} s"


async def backend_lost(visitor: Visitor) -> str:
    """A backend that dies is taken out of rotation."""
    visitor.stack.children["engine-b"].kill()

    async def noticed() -> bool:
        async with aiohttp.ClientSession() as session, session.get(visitor.stack.admin + "/health") as answer:
            return any(b["name"] == "engine-b" and b["health"] == "down" for b in (await answer.json())["backends"])

    await visitor.stack.until("engine-b to be seen down", noticed, patience_s=10.0)
    answers = await asyncio.gather(*(visitor.ask(CHAT, chat()) for _ in range(4)))
    expect(all(answer.status == 200 for answer in answers), [answer.status for answer in answers])
    return "engine-b killed and seen down; 4 of 4 requests answered by the others"


async def router_killed(visitor: Visitor) -> str:
    """Without router_ext Envoy serves what needs no router, and refuses what does."""
    visitor.stack.children["router"].send(signal.SIGKILL)
    visitor.stack.children["router"].kill()
    answers = [await visitor.ask(CHAT, chat()) for _ in range(5)]
    expect(all(answer.status == 200 for answer in answers), [(answer.status, answer.body[:200]) for answer in answers])
    refused = await visitor.ask(CHAT, chat(), **{SESSION_ID: "sess_00000000-0000-4000-8000-000000000000"})
    expect(refused.status == 503 and "retry-after" in refused.headers, (refused.status, refused.headers))
    return "router_ext killed: 5 of 5 plain requests answered, a session request got 503 with Retry-After"


async def router_back(visitor: Visitor) -> str:
    """Routing is back after a restart."""
    visitor.stack.start_router()
    started = time.monotonic()

    async def routed() -> bool:
        answer = await visitor.ask(CHAT, chat(), **{SERVICE: "premium"})
        return answer.status == 200 and answer.headers.get(BACKEND) == "strong"

    await visitor.stack.until("routing to be back", routed, patience_s=20.0)
    return f"routing by rules again after {time.monotonic() - started:.1f} s"


async def counted(visitor: Visitor) -> str:
    """Every request is counted and none is left in flight."""
    requests = await visitor.metric("kronaxis_router_requests_total")

    async def idle() -> bool:
        return await visitor.metric("kronaxis_router_backend_active_requests") == 0

    await visitor.stack.until("in-flight gauges at 0", idle, patience_s=10.0)
    expect(requests > 0, requests)
    return f"{requests:.0f} requests counted since the restart, 0 in flight"


STEPS: Final[tuple[Step, ...]] = (
    plain_chat,
    streamed_chat,
    rule_by_service,
    model_rewritten,
    model_list,
    quality_gate,
    spill_over,
    bad_request,
    forged_header,
    hot_reload,
    backend_lost,
    router_killed,
    router_back,
    counted,
)
