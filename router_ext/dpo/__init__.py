"""Preference pairs for training: a line of each, with or without personal data, and the files that they go to."""
