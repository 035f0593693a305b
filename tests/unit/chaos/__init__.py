"""The pure parts of the chaos benchmark."""
