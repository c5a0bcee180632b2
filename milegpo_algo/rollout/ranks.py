"""Several processes that ask one engine together, each with rows of its own.

Every process takes part in every exchange. Rows travel with the name of their process, so that
processes with different numbers of rows never get each other's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object

T = TypeVar("T")


class Ranks(Protocol):
    """The processes that share an engine, seen from one of them."""

    @property
    def index(self) -> int:
        """This process's place in what `gather` returns."""
        ...

    def gather(self, mine: T) -> list[T]:
        """Everyone's objects, in the order of the processes."""
        ...

    def agree(self, compute: Callable[[], T]) -> T:
        """The result of a computation that all of them want and all could do."""
        ...


class Alone:
    """One process with an engine of its own."""

    index = 0

    def gather(self, mine: T) -> list[T]:
        """See `Ranks.gather`."""
        return [mine]

    def agree(self, compute: Callable[[], T]) -> T:
        """See `Ranks.agree`."""
        return compute()


@dataclass(frozen=True)
class World:
    """All processes of a run; the main one computes, the others are told.

    An exception in the main process is raised in all of them, or they would wait for it forever.
    """

    accelerator: Accelerator

    @property
    def index(self) -> int:
        """See `Ranks.index`."""
        return cast(int, self.accelerator.process_index)

    def gather(self, mine: T) -> list[T]:
        """See `Ranks.gather`."""
        return cast(list[T], gather_object([mine]))

    def agree(self, compute: Callable[[], T]) -> T:
        """See `Ranks.agree`."""
        told: list[object] = [None]
        if self.accelerator.is_main_process:
            try:
                told = [compute()]
            except Exception as error:  # raised below, by everyone
                told = [_Failure(error)]
        broadcast_object_list(told, from_process=0)
        [result] = told
        if isinstance(result, _Failure):
            raise result.error
        return cast(T, result)


@dataclass(frozen=True)
class _Failure:
    error: Exception


@dataclass(frozen=True)
class TensorParallel:
    """Processes that hold parts of one engine: all of them compute, on equal rows.

    Attributes:
        group: of torch.distributed.
        size: of the group.
    """

    group: torch.distributed.ProcessGroup
    size: int

    @property
    def index(self) -> int:
        """See `Ranks.index`."""
        return torch.distributed.get_rank(group=self.group)

    def gather(self, mine: T) -> list[T]:
        """See `Ranks.gather`."""
        everyone: list[T] = [mine] * self.size
        torch.distributed.all_gather_object(everyone, mine, group=self.group)
        return everyone

    def agree(self, compute: Callable[[], T]) -> T:
        """See `Ranks.agree`."""
        return compute()
