"""Where tasks run: on the cores of this machine or on a cluster; each one once, and kept as soon as it is finished."""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import rekindle
from rekindle import checks
from rekindle.assignment.kernels import ensure_compiled
from rekindle.auditing.store import Store, Task, code_digest
from rekindle.auditing.tasks import Result
from rekindle.errors import InvalidSetting, Stopped
from rekindle.model import Counts, Release, Trajectories
from rekindle.progress import Progress

__all__ = ["Runner", "Workers", "workers_of"]

_REACH_SECONDS = 15
_ATTEMPTS = 3

Key = TypeVar("Key")


class Workers(Protocol):
    """Somewhere to compute: gives the position of each task with its result, in the order in which they finish."""

    def __call__(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]: ...


class Runner:
    """Does every task once, however often it is asked for.

    Parameters
    ----------
    store
        Each result is kept as soon as it is there, by this process alone, whichever worker computed it.
    workers
        Where to compute.
    progress
        Called with the number of tasks done and of all that are known so far.
    """

    def __init__(self, store: Store, workers: Workers, progress: Progress | None = None) -> None:
        self._store, self._workers, self._progress = store, workers, progress
        self._found: dict[str, Result] = {}
        self._total = 0

    def run(self, tasks: Mapping[Key, Task]) -> dict[Key, Result]:
        """Give the result of each task, from before, from the store, or computed now."""
        keys = {name: task.key for name, task in tasks.items()}
        todo: dict[str, Task] = {}
        for name, key in keys.items():
            if key not in self._found and key not in todo:
                stored = self._store.get(tasks[name])
                if stored is None:
                    todo[key] = tasks[name]
                else:
                    self._found[key] = stored
                self._total += 1
        self._report(len(todo))
        waiting = list(todo.items())
        for done, (position, result) in enumerate(self._workers([task for _, task in waiting]), 1):
            key, task = waiting[position]
            # Through JSON, so that a fresh result and one from the store are the same to the last bit.
            self._found[key] = Result(json.loads(json.dumps(result.numbers)), result.arrays)
            self._store.put(task, result)
            self._report(len(todo) - done)
        return {name: self._found[key] for name, key in keys.items()}

    def _report(self, left: int) -> None:
        if self._progress is not None:
            self._progress(self._total - left, self._total)


@contextmanager
def workers_of(workers: int | None, cluster: str | None) -> Iterator[Workers]:
    """Give the cores of this machine (all by default), or a Dask cluster by the address of its scheduler."""
    if cluster is not None:
        with _cluster(cluster) as found:
            yield found
        return
    import joblib

    count = joblib.cpu_count() if workers is None else checks.whole("workers", workers, least=1)

    def on_cores(tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
        ensure_compiled()
        if count == 1 or len(tasks) < 2:
            yield from ((position, _call(task)) for position, task in enumerate(tasks))
            return
        left = dict(enumerate(tasks))
        for attempt in range(_ATTEMPTS):
            # Each process keeps to one core: the tasks are what runs side by side.
            # Nothing goes through a temporary file: it would hold the truth, and not in the output's folder.
            with joblib.parallel_config("loky", inner_max_num_threads=1, max_nbytes=None):
                pool = joblib.Parallel(n_jobs=count, return_as="generator_unordered", batch_size=1)
                try:
                    for position, result in _quietly(
                        pool(joblib.delayed(_numbered)(*one) for one in list(left.items()))
                    ):
                        del left[position]
                        yield position, result
                    return
                except BrokenExecutor as error:
                    # A process died; what it and the others had under way is done again.
                    if attempt == _ATTEMPTS - 1:
                        raise Stopped(
                            f"Worker processes keep dying, perhaps for want of memory ({type(error).__name__}). The tasks "
                            "that were finished are kept; run it again with fewer workers to resume."
                        ) from None

    yield on_cores


def _quietly(found: Generator[tuple[int, Result], None, None]) -> Iterator[tuple[int, Result]]:
    """Go through results without joblib's warning of tasks that an interruption leaves undone."""
    nothing = object()
    try:
        while True:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=r"\d+ tasks which were still being processed")
                one = next(found, nothing)
            if one is nothing:
                return
            yield one  # type: ignore[misc]
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.close()


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
    try:
        dask: Any = importlib.import_module("dask")
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise InvalidSetting(
            "A cluster needs Dask, which is not installed: pip install 'rekindle-mobility[cluster]'."
        ) from None
    try:
        client = distributed.Client(address, timeout=_REACH_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidSetting(
            f"The cluster at {address} cannot be reached ({type(error).__name__}: {error}). Is its scheduler running, and "
            "is the address that of the scheduler, such as tcp://10.0.0.1:8786?"
        ) from None
    with client, client.as_current():
        try:
            client.wait_for_workers(1, timeout=_REACH_SECONDS)
        except TimeoutError:
            raise InvalidSetting(
                f"The cluster at {address} has no workers; start some with: dask worker {address}"
            ) from None
        other = {
            where: there
            for where, there in client.run(code_digest, on_error="return").items()
            if there != code_digest()
        }
        if other:
            raise InvalidSetting(
                f"{len(other)} workers of the cluster at {address} have another Rekindle than this machine "
                f"({rekindle.__version__}), or none: {', '.join(sorted(other))}. Install the same on all."
            )

        def on_cluster(tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
            shared: dict[int, Any] = {}

            def send(value: Any) -> Any:
                """Data go to the cluster once, however many tasks need them; as a task, so that no dead worker loses them."""
                if not isinstance(value, (Counts, Release, Trajectories, Result)):
                    return value
                if id(value) not in shared:
                    shared[id(value)] = client.submit(_hold, value, pure=False)
                return shared[id(value)]

            # When a worker dies, the scheduler has its tasks done again by the others.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                futures = {
                    client.submit(task.call, *map(send, task.arguments), pure=False): position
                    for position, task in enumerate(tasks)
                }
            for future in distributed.as_completed(futures):
                try:
                    result = future.result()
                except (distributed.KilledWorker, CancelledError) as error:
                    raise Stopped(
                        f"The cluster at {address} gave up ({type(error).__name__}: {error}). Do its workers have enough "
                        "memory? The tasks that were finished are kept; run it again to resume."
                    ) from None
                yield futures[future], result
                future.release()

        yield on_cluster


def _hold(value: Any) -> Any:
    return value


def _call(task: Task) -> Result:
    return task.call(*task.arguments)


def _numbered(position: int, task: Task) -> tuple[int, Result]:
    return position, _call(task)
