"""Where the parts of the work run: on threads, or wherever joblib was told to, on processes or on a Dask cluster.

A part is a function of what it is given, so that the results are the same to the last bit wherever it runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

Result = TypeVar("Result")


def in_parallel(
    work: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], workers: int, stopped: Callable[[], bool]
) -> Generator[Result, None, None]:
    """Do tasks, a few at a time, and give their results in order.

    Parameters
    ----------
    work
        Called with the parts of a task, and with a function that says whether to end soon. It has a name in a module.
    tasks
        Taken one after the other, when there is room.
    workers
        How many run side by side. Within ``joblib.parallel_config(backend="loky")`` or ``"dask"`` they are processes, which
        only end after the parts that they have begun.
    stopped
        Whether to end soon.
    """
    backend, _ = get_active_backend(prefer="threads")
    if not getattr(backend, "supports_sharedmem", False):
        # Without maps of files: kernels are compiled for arrays that can be written to.
        run = Parallel(n_jobs=workers, return_as="generator", max_nbytes=None)
        yield from map(_own, run(delayed(_elsewhere)(work, task) for task in tasks))
        return
    halt = threading.Event()
    pool = ThreadPoolExecutor(workers)
    under_way: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            under_way.append(pool.submit(work, *task, lambda: stopped() or halt.is_set()))
            if len(under_way) > 2 * workers:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        halt.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _elsewhere(work: Callable[..., Result], task: tuple[Any, ...]) -> Result:
    return work(*_own(task), _never)


def _never() -> bool:
    return False


def _own(value: Any) -> Any:
    """Copy the arrays that cannot be written to, as they may come from elsewhere."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    if isinstance(value, tuple | list):
        return type(value)(map(_own, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _own(getattr(value, each.name)) for each in fields(value)})
    return value
