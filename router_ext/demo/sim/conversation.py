"""From the turns of a request to its prompt, for the three APIs that speak in turns."""

from typing import Any

from router_ext.demo.sim.errors import ApiError, not_multimodal, wrong_type
from router_ext.demo.sim.exchange import Frame, Json
from router_ext.demo.sim.prompt import Prompt, read_prompt
from router_ext.demo.sim.templates import ImagePartError, MessageError, render_chat


def read_conversation(turns: list[Any], body: Json, frame: Frame, field: str) -> Prompt | ApiError:
    """The prompt of these turns and the request's tools; ``field`` is what a refusal names.

    Requests to different adapters, or with different ``cache_salt``, share no cached block.
    """
    try:
        rendered = render_chat(turns, body.get("tools"), multimodal=frame.settings.multimodal)
    except ImagePartError:
        return not_multimodal(frame.model)
    except MessageError:
        return wrong_type(field, "list")
    return read_prompt(rendered, f"{frame.model}/{body.get('cache_salt', '')}", frame.settings)
