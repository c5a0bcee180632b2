"""Baselines and the pieces of an experiment: policies to start from, evaluation, result rows."""
