"""Configuration: strict YAML and environment in, frozen sections out, all problems at once."""
