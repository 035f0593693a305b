"""Where conversations are kept: in this process, or in Redis or Valkey for several."""
