"""Runs the catalogue over a state."""

from router_ext.doctor.catalogue import CHECKS
from router_ext.doctor.finding import Check, Result
from router_ext.doctor.state import State


def diagnose(state: State) -> tuple[Result, ...]:
    """One result a check, in the catalogue's order."""
    return tuple(_result(check, state) for check in CHECKS)


def _result(check: Check, state: State) -> Result:
    findings = check.examine(state)
    return Result(check, None if findings is None else tuple(findings))
