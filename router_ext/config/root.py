"""The whole file as one section."""

from typing import Final

from router_ext.config.backends import BACKEND
from router_ext.config.document import Mapping
from router_ext.config.policy import AB_TEST, BUDGETS, DEFAULTS, QUALITY_GATE, RATE_LIMITS, RULE
from router_ext.config.reading import Reading
from router_ext.config.scalars import local_path
from router_ext.config.section import Field, Items, Section, Values
from router_ext.config.sections import DpoExport, QualityGate, RouterConfig
from router_ext.config.server import SERVER


def _logs_are_two_files(values: Values, mapping: Mapping, reading: Reading) -> None:
    path, gate = values.get("shadow_log_path"), values.get("quality_gate")
    export = gate.dpo_export if isinstance(gate, QualityGate) else DpoExport()
    if path is not None and export.enabled and path == export.output_path:
        reading.problem(mapping.entries["shadow_log_path"], "is the file of quality_gate.dpo_export already")


ROOT: Final = Section(
    RouterConfig,
    (
        Field("server", SERVER, "Ports, limits and the switches of the features."),
        Field("backends", Items(BACKEND, min_items=1), "Where requests can go.", required=True),
        Field("rules", Items(RULE), "Which requests may go where."),
        Field("defaults", DEFAULTS, "What applies where no rule does."),
        Field("budgets", BUDGETS, "Daily limits by service; default is for services that are not named."),
        Field("rate_limits", RATE_LIMITS, "Requests a second by service; default is for each that is not named."),
        Field("quality_gate", QUALITY_GATE, "Checks of answers."),
        Field("ab_tests", Items(AB_TEST), "Experiments between two backends."),
        Field("shadow_log_path", local_path(), "File for the answers that shadows compare, as JSON lines."),
    ),
    relate=_logs_are_two_files,
)
