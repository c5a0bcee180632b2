"""ALFWorld: household tasks in text (arXiv:2010.03768), with exact states.

`games` makes or loads games, `fast_engine` and `textworld_engine` play them, `canonical` names
their states, `env` is the Gymnasium environment `milegpo/ALFWorld-v0`, `experts` holds players that
know how. Importing this package imports none of them.
"""
