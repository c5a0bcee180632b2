"""Rollouts: policy and environments in lockstep, from chat messages to token ids and back.

`generator` and `collect` are plain Python; `hf_backend` needs torch and transformers.
"""
