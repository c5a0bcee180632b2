"""Weights go through a queue of this process instead of NCCL."""

import queue
from types import SimpleNamespace

CHANNEL: queue.Queue = queue.Queue()


def trainer_init(init_info):
    return SimpleNamespace(group=SimpleNamespace(store=None, socket=None))
