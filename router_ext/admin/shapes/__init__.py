"""What the admin API takes and gives, as pydantic models: also the inputs and outputs of tools that stand on it."""
