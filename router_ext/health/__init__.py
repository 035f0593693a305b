"""What is known of a backend's well-being: pure tables over observations."""
