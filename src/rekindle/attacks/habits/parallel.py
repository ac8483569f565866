"""Where the parts of the work run: on threads, with an audit's workers, or wherever joblib was told to.

A part is a function of what it is given, so that the results are the same to the last bit wherever it runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

Result = TypeVar("Result")


class Pool(Protocol):
    """Who does the parts of what runs here, instead of threads."""

    @property
    def workers(self) -> int:
        """How many parts run side by side."""

    def submit(self, work: Callable[..., Any], part: tuple[Any, ...]) -> Future[Any]:
        """Have `do_part` done with these arguments, when there is room."""


POOL: ContextVar[Pool | None] = ContextVar("POOL", default=None)
"""Who does the parts of what runs in this thread; None for threads, or what joblib was told."""


def in_parallel(
    work: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], workers: int, stopped: Callable[[], bool]
) -> Generator[Result, None, None]:
    """Do tasks, a few at a time, and give their results in order.

    Parameters
    ----------
    work
        Called with the parts of a task, and with a function that says whether to end soon. It has a name in a module, or is a
        `partial` of such a function with what all tasks have in common, which is then sent to a cluster once.
    tasks
        Taken one after the other, when there is room.
    workers
        How many run side by side, unless a `POOL` says. There, and within ``joblib.parallel_config(backend="loky")`` or
        ``"dask"``, they are processes, which only end after the parts that they have begun.
    stopped
        Whether to end soon.
    """
    pool = POOL.get()
    if pool is not None:
        yield from _ahead(partial(pool.submit, work), tasks, lambda: pool.workers)
        return
    backend, _ = get_active_backend(prefer="threads")
    if not getattr(backend, "supports_sharedmem", False):
        # Without maps of files: kernels are compiled for arrays that can be written to.
        run = Parallel(n_jobs=workers, return_as="generator", max_nbytes=None)
        yield from map(_own, run(delayed(do_part)(work, task) for task in tasks))
        return
    halt = threading.Event()
    threads = ThreadPoolExecutor(workers)

    def begin(task: tuple[Any, ...]) -> Future[Result]:
        return threads.submit(work, *task, lambda: stopped() or halt.is_set())

    try:
        yield from _ahead(begin, tasks, lambda: workers)
    finally:
        halt.set()
        threads.shutdown(wait=True)


def _ahead(
    begin: Callable[[tuple[Any, ...]], Future[Result]], tasks: Iterable[tuple[Any, ...]], workers: Callable[[], int]
) -> Generator[Result, None, None]:
    """Begin tasks a few ahead of what so many workers do, and give the results in order."""
    under_way: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            under_way.append(begin(task))
            if len(under_way) > 2 * workers():
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        for each in under_way:
            each.cancel()


def do_part(work: Callable[..., Result], part: tuple[Any, ...]) -> Result:
    """Do a part that may come from elsewhere."""
    return _own(work)(*_own(part), _never)  # type: ignore[no-any-return]


def _never() -> bool:
    return False


def _own(value: Any) -> Any:
    """Copy the arrays that cannot be written to, as they may come from elsewhere."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    if isinstance(value, partial):
        return partial(value.func, *_own(value.args))
    if isinstance(value, tuple | list):
        return type(value)(map(_own, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _own(getattr(value, each.name)) for each in fields(value)})
    return value
