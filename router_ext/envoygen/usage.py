"""Token counts read out of answers by Envoy itself, plain or streamed, whatever the API's words for them are.

All of them end as numbers under three keys of one metadata namespace: ``prompt_tokens``, ``completion_tokens`` and
``cached_tokens``. A count that an answer does not hold has no key; where it holds several, the last one counts.
"""

from typing import Final

from envoy_data_plane.envoy.config.core.v3 import DataSource
from envoy_data_plane.envoy.extensions.filters.http.lua.v3 import Lua

from router_ext.envoygen.names import USAGE_NAMESPACE

COUNTS: Final[dict[str, str]] = {
    "prompt_tokens": "prompt_tokens",
    "input_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "output_tokens": "completion_tokens",
    "cached_tokens": "cached_tokens",
    "cache_read_input_tokens": "cached_tokens",
}
"""JSON key of an answer → metadata key: chat completions, completions and embeddings; responses; messages."""

_SCRIPT: Final = """\
local COUNTS = {%(counts)s}
local CARRY_BYTES = 128

local function note(handle, text)
  local metadata = handle:streamInfo():dynamicMetadata()
  for key, digits in text:gmatch('"([%%l_]+_tokens)"%%s*:%%s*(%%d+)') do
    local name = COUNTS[key]
    if name then metadata:set("%(namespace)s", name, tonumber(digits)) end
  end
end

function envoy_on_response(handle)
  local kind = handle:headers():get("content-type") or ""
  if not (kind:find("json", 1, true) or kind:find("event-stream", 1, true)) then return end
  local carry = ""
  for chunk in handle:bodyChunks() do
    local text = carry .. chunk:getBytes(0, chunk:length())
    if text:find('_tokens"', 1, true) then note(handle, text) end
    carry = text:sub(-CARRY_BYTES)
  end
end
"""


def usage_reader() -> Lua:
    """A filter that searches each piece of a JSON or event stream answer as it passes, and holds nothing back.

    A quote inside a JSON string is escaped, so ``"prompt_tokens":`` is always a key, never generated text. The end of
    each piece is kept for a key that is split over two. Envoy's ``json_to_metadata`` would hold the whole answer, and
    its ``sse_to_metadata`` ends the process when the data of an event is a bare number, string or null.
    """
    counts = ", ".join(f'{key} = "{name}"' for key, name in COUNTS.items())
    script = _SCRIPT % {"counts": counts, "namespace": USAGE_NAMESPACE}
    return Lua(default_source_code=DataSource(inline_string=script))
