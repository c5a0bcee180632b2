"""Command-line programs; each is run as ``python -m scripts.NAME`` and has ``--help``."""
