"""The one owner of live state: gather (may await), decide and commit (never awaits), settle exactly once."""
