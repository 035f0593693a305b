"""JSON Schema validation of answers. A schema is what a caller sent: its size, references and time are bounded."""
