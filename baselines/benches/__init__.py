"""Benches of what no environment owns: a module here is a subcommand of scripts.bench."""
