"""Samples and lines of shared state."""

from tests.fakes.recorder import RecorderRig


def test_events_are_counted_by_kind() -> None:
    """And those that were given up, together."""
    rig = RecorderRig()
    for event in ("prefix_served", "prefix_served", "circuit_changed", "spend_told"):
        rig.recorder.shared_published(event)
    rig.recorder.shared_received("unreadable")
    rig.recorder.shared_dropped(3)
    assert rig.series("shared_state_published_total") == {
        ("prefix_served",): 2.0,
        ("circuit_changed",): 1.0,
        ("spend_told",): 1.0,
    }
    assert rig.series("shared_state_received_total") == {("unreadable",): 1.0}
    assert rig.series("shared_state_dropped_total") == {(): 3.0}


def test_the_connection_is_a_gauge_and_a_line() -> None:
    """A warning with the cause when it is lost."""
    rig = RecorderRig()
    rig.recorder.shared_connected(True, "")
    assert rig.series("shared_state_connected") == {(): 1.0}
    rig.recorder.shared_connected(False, "ConnectionError")
    assert rig.series("shared_state_connected") == {(): 0.0}
    told = [(line["level"], line["event"], line["connected"], line["cause"]) for line in rig.lines()]
    assert told == [("info", "shared_state", True, ""), ("warning", "shared_state", False, "ConnectionError")]
