"""What Envoy itself reads out of answers as they pass: token counts, and how an event stream ended.

All of it is dynamic metadata of one namespace. Counts are numbers under ``prompt_tokens``, ``completion_tokens`` and
``cached_tokens``, whatever the API's words for them are; a count that an answer does not hold has no key, and where it
holds several, the last one counts. ``stream_end`` is the value of a ``StreamEnd``; it has no key when the answer is not
an event stream with status 200 of an API of ``STREAMS``, is compressed, or was cut off before it said how it ends.
"""

from typing import Final

from envoy_data_plane.envoy.config.core.v3 import DataSource
from envoy_data_plane.envoy.extensions.filters.http.lua.v3 import Lua

from router_ext.envoygen.names import REQUEST_NAMESPACE, USAGE_NAMESPACE
from router_ext.model.headers import EGRESS_FLAGS
from router_ext.model.outcome import StreamEnd
from router_ext.stream.words import CHOICES, COUNTS, ENDINGS, LAST_WORDS, STREAMS

_READER: Final = r"""
local CARRY_BYTES = 128

local function note(handle, key, value)
  handle:streamInfo():dynamicMetadata():set(NAMESPACE, key, value)
end

local function note_counts(handle, text)
  for key, digits in text:gmatch('"([%l_]+_tokens)"%s*:%s*(%d+)') do
    local name = COUNTS[key]
    if name then note(handle, name, tonumber(digits)) end
  end
end

local function of_data(text, at)
  local first = text:match('^data:[ \t]*([%[{])', at)
  if first == '[' then return text:find('^data:[ \t]*%[DONE%]', at) and WHOLE end
  if not first then return nil end
  local key, value = text:match('^data:[ \t]*{[ \t]*"(%l+)"[ \t]*:[ \t]*([{"][%l_.]*"?)', at)
  if key == 'error' then return ERROR end
  if key == 'type' then return LAST_WORDS[value:match('^"(.*)"$')] end
  return key == 'object' and value == '"error"' and ERROR
end

local function of_name(text, at)
  local name = text:match('^event:[ \t]*([%l_.]+)[ \t]*\n', at)
  if name then return LAST_WORDS[name] end
  return text:find('^error:[ \t]*{', at) and ERROR
end

-- A line end inside a JSON string is escaped: what stands at the beginning of a line is never generated text.
local function of_lines(text)
  local found
  local line_end = text:find('\n', 1, true)
  while line_end do
    local at = line_end + 1
    local first, seen = text:byte(at), nil
    if first == 100 then seen = of_data(text, at) elseif first == 101 then seen = of_name(text, at) end
    if seen == ERROR then return ERROR end
    found = seen or found
    line_end = text:find('\n', at, true)
  end
  return found
end

-- The plain search costs next to nothing and is nearly always in vain. It is fast when its first byte is rare.
local function holds(text, word, pattern)
  return text:find(word, 1, true) and text:find(pattern)
end

local function of_choices(text)
  if not (text:find('finish_reason":"', 1, true) or text:find('finish_reason": "', 1, true)) then return nil end
  if text:find('finish_reason": ?"error"') then return ERROR end
  return text:find('finish_reason": ?"[%a_]+"') and WHOLE
end

local function of_types(text)
  return (holds(text, '.completed"', '"type": ?"response%.completed"')
    or holds(text, '.incomplete"', '"type": ?"response%.incomplete"')) and WHOLE
end

-- An error outweighs a last word, before it or after it.
local function ending(text, kind, known)
  if known == ERROR then return ERROR end
  local line = of_lines(text)
  if line == ERROR then return ERROR end
  local inside
  if kind == CHOICES then inside = of_choices(text) else inside = of_types(text) end
  if inside == ERROR then return ERROR end
  return known or line or inside or nil
end

local function judged(handle, headers)
  if headers:get(':status') ~= '200' then return nil end
  local request = handle:streamInfo():dynamicMetadata():get(REQUEST)
  return request and request['streams']
end

-- The blank line ends an event that was left open. After trailers the last piece is gone, and so is the chance.
local function finish(handle, last, kind)
  note(handle, 'stream_end', TRUNCATED)
  if last then
    pcall(function() last:setBytes(last:getBytes(0, last:length()) .. '\n\n' .. ENDINGS[kind]) end)
  end
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local content_type = headers:get('content-type') or ''
  local streamed = content_type:find('event-stream', 1, true)
  if headers:get('content-encoding') or not (streamed or content_type:find('json', 1, true)) then return end
  local kind = streamed and judged(handle, headers)
  if kind then headers:remove('content-length') end
  local carry, stream_end, last = '\n', nil, nil
  for chunk in handle:bodyChunks() do
    local text = carry .. chunk:getBytes(0, chunk:length())
    if kind and text:find('\r', 1, true) then text = text:gsub('\r', '\n') end
    if text:find('_tokens"', 1, true) then note_counts(handle, text) end
    local seen = kind and ending(text, kind, stream_end)
    if seen and seen ~= stream_end then
      stream_end = seen
      note(handle, 'stream_end', seen)
    end
    carry, last = text:sub(-CARRY_BYTES), chunk
  end
  if kind and not stream_end then finish(handle, last, kind) end
end
"""

_FRAMER: Final = r"""
function envoy_on_request(handle)
  local headers = handle:headers()
  local path = (headers:get(':path') or ''):match('^[^?#]*')
  if headers:get(':method') == 'POST' and STREAMS[path] then
    handle:streamInfo():dynamicMetadata():set(REQUEST, 'streams', STREAMS[path])
  end
end

function envoy_on_response(handle)
  handle:headers():remove(FLAGS)
  local answer = handle:streamInfo():dynamicMetadata():get(NAMESPACE)
  if answer and answer['stream_end'] == TRUNCATED then handle:headers():remove('content-length') end
end
"""


def answer_reader() -> Lua:
    """A filter that searches each piece of a JSON or event stream answer as it passes, and holds nothing back.

    It belongs behind the processor. A quote inside a JSON string is escaped, so ``"prompt_tokens":`` is always a key,
    never generated text. The end of each piece is kept for what is split over two. A stream that ends in order without
    a last word gets an error event. Envoy's ``json_to_metadata`` would hold the whole answer, and its
    ``sse_to_metadata`` ends the process when the data of an event is a bare number, string or null.
    """
    return _script(_READER)


def answer_framer() -> Lua:
    """A filter for the place before the processor, which tells the reader for which requests it judges a stream.

    There the path is still the client's. On the way back it removes a length that is wrong: Lua's ``setBytes`` sets
    ``content-length`` to the size of the last piece, which counts while the processor still holds the headers. It also
    removes what Envoy's own answers tell the processor, which may be away.
    """
    return _script(_FRAMER)


def _script(body: str) -> Lua:
    names = {
        "NAMESPACE": USAGE_NAMESPACE,
        "REQUEST": REQUEST_NAMESPACE,
        "CHOICES": CHOICES,
        "FLAGS": EGRESS_FLAGS,
        "WHOLE": StreamEnd.WHOLE,
        "ERROR": StreamEnd.ERROR,
        "TRUNCATED": StreamEnd.TRUNCATED,
    }
    tables = {"COUNTS": COUNTS, "STREAMS": STREAMS, "ENDINGS": ENDINGS, "LAST_WORDS": LAST_WORDS}
    lines = [f"local {name} = {_quoted(value)}" for name, value in names.items()]
    lines += [f"local {name} = {_table(values)}" for name, values in tables.items()]
    return Lua(default_source_code=DataSource(inline_string="\n".join(lines) + body))


def _table(values: dict[str, str]) -> str:
    return "{" + ", ".join(f"[{_quoted(key)}] = {_quoted(value)}" for key, value in values.items()) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
