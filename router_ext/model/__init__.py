"""The words of the domain: frozen values, no behaviour beyond their own fields. Imports nothing of the project."""
