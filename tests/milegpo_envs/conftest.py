"""Hypothesis without deadlines: a busy machine must not fail a property test."""

from hypothesis import settings

settings.register_profile("milegpo", deadline=None)
settings.load_profile("milegpo")
