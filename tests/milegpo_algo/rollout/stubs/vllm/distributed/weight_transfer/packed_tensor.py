from .nccl_common import CHANNEL


def packed_nccl_broadcast_producer(iterator, group, src, post_iter_func):
    for item in iterator:
        CHANNEL.put(post_iter_func(item).detach().clone())
