"""Structured logs: one JSON object a line on stderr, one event name a line, never a body, prompt or credential."""

import logging
import sys

import orjson
import structlog


def configure_logging(level: str = "info", **fields: object) -> None:
    """Sets structlog up. ``level`` is one of debug, info, warning, error. Raises ValueError otherwise.

    Every line has ``fields``.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"unknown log level {level!r}")
    structlog.configure(
        processors=[
            lambda _logger, _method, event: {**event, **fields},
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=lambda event, **_: orjson.dumps(event, default=str)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.BytesLoggerFactory(file=sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )


def get_logger() -> structlog.typing.FilteringBoundLogger:
    """The process's logger."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger
