"""A judge of schemas whose verdicts a test writes down."""

import asyncio
import json
from dataclasses import dataclass, field

from router_ext.model.gate import SchemaText, SchemaVerdict


@dataclass(slots=True)
class FakeJudge:
    """Implements ``ports.SchemaJudge``: whatever is JSON fits, unless ``verdicts`` says otherwise of the text.

    ``refused`` are the schemas that are known to be of no use, ``asked`` what was judged. While ``waits`` is given no
    verdict comes before it is set.
    """

    verdicts: dict[str, SchemaVerdict] = field(default_factory=dict)
    refused: set[bytes] = field(default_factory=set)
    waits: asyncio.Event | None = None
    asked: list[tuple[bytes | None, str]] = field(default_factory=list)

    def refuses(self, schema: SchemaText) -> bool:
        """True for those in ``refused``."""
        return schema.text in self.refused

    async def judge(self, schema: SchemaText | None, text: str) -> SchemaVerdict:
        """The verdict that was written down, or what the text is."""
        self.asked.append((None if schema is None else schema.text, text))
        if self.waits is not None:
            await self.waits.wait()
        return self.verdicts.get(text) or _of(text)


def _of(text: str) -> SchemaVerdict:
    try:
        json.loads(text)
    except ValueError:
        return SchemaVerdict.NOT_JSON
    return SchemaVerdict.VALID
