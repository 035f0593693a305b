"""What one configuration means for the engine; replaced as a whole."""

from dataclasses import dataclass

from router_ext.config.sections import RouterConfig
from router_ext.engine.answers import ModelList
from router_ext.model.rejection import Rejection
from router_ext.model.request import Caller
from router_ext.payload.inference import BodyLimits, InferenceBody, read_inference
from router_ext.routing.pipeline import Pipeline
from router_ext.stream.events import RequestHead


@dataclass(frozen=True, slots=True)
class Configured:
    """A configuration with everything that is made of it."""

    config: RouterConfig
    pipeline: Pipeline
    limits: BodyLimits
    models: ModelList

    @classmethod
    def of(cls, config: RouterConfig, created: int) -> "Configured":
        """``created`` is when the models came to be, in seconds since the epoch."""
        server = config.server
        pipeline = Pipeline(
            config.rules,
            config.defaults.fallback_chain,
            queue_aware=server.queue_aware_routing,
            balancing=server.balancing,
            max_queue_ratio=server.kv_pinning.max_queue_ratio,
        )
        sees = any("vision" in backend.capabilities for backend in config.backends)
        tested = any(test.match.content_type for test in config.ab_tests)
        limits = BodyLimits(server.max_body_bytes, content_type=pipeline.needs_content_type or sees or tested)
        return cls(config, pipeline, limits, ModelList(config, created))

    def read(self, head: RequestHead, caller: Caller, body: bytes) -> InferenceBody | Rejection:
        """A request's body."""
        return read_inference(head.path, caller, body, head.headers.get("content-encoding", ""), self.limits)
