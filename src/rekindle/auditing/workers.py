"""Where tasks run: on the cores of this machine or on a cluster; each one once, and kept as soon as it is finished."""

from __future__ import annotations

import importlib
import json
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import rekindle
from rekindle import checks
from rekindle.assignment import kernels  # as a whole: this module has no kernel, so a change here compiles none again
from rekindle.auditing.store import Store, Task, code_digest
from rekindle.auditing.tasks import Result
from rekindle.errors import InvalidSetting, Stopped
from rekindle.model import Counts, Release, Trajectories
from rekindle.progress import Progress

__all__ = ["OutOfTime", "Runner", "Stage", "Workers", "workers_of"]

_REACH_SECONDS = 15
_ATTEMPTS = 3
_LOOK_SECONDS = 1.0
"""How often the tasks under way are looked at."""

Stage = Generator[tuple[dict[Any, Task], dict[Any, Result]], None, None]
"""A part of the work: it gives tasks by name, and a dictionary that each result is put into as soon as it is there, and goes
on when all of them are."""

Told = Callable[[float], None]
"""Called with the share of a task that is done."""


class OutOfTime(Exception):  # noqa: N818
    """The time for the tasks is up. It never leaves the audit."""


class Workers(Protocol):
    """Somewhere to compute.

    Attributes
    ----------
    cores
        How many tasks run side by side.
    count
        How many are under way at most.
    """

    @property
    def cores(self) -> int: ...

    @property
    def count(self) -> int: ...

    def prepare(self) -> None:
        """Compile the kernels, unless that was done."""

    def submit(self, task: Task, told: Told) -> Future[Result]:
        """Begin a task."""

    def look(self) -> None:
        """Tell how far the tasks under way are."""


@dataclass(eq=False)
class _Waiting:
    """A stage whose tasks are not all done."""

    stage: Stage
    priority: int
    names: list[Any] = field(default_factory=list)
    missing: dict[str, list[Any]] = field(default_factory=dict)
    into: dict[Any, Result] = field(default_factory=dict)


class Runner:
    """Does every task once, however often it is asked for, those of the first stages first.

    Parameters
    ----------
    store
        Each result is kept as soon as it is there, by this process alone, whichever worker computed it.
    workers
        Where to compute.
    progress
        Called with the work done and all that is expected, in milliseconds of an ordinary core.
    expected
        How much work is expected in all, in seconds of an ordinary core.
    until
        When the time is up, by `time.monotonic`; None for never.
    finished
        Called when a task is finished, after its result was put where its stage wants it.
    found
        Results that are there already, by the key of their task; new ones are added.

    Attributes
    ----------
    until
        As given; it may be changed.
    done, known
        How many tasks are done, and how many are known so far.
    """

    def __init__(
        self,
        store: Store,
        workers: Workers,
        progress: Progress | None = None,
        *,
        expected: float = 0.0,
        until: float | None = None,
        finished: Callable[[], None] | None = None,
        found: dict[str, Result] | None = None,
    ) -> None:
        self._store, self._workers, self._progress = store, workers, progress
        self._expected, self.until, self._finished = expected, until, finished
        self._found: dict[str, Result] = {} if found is None else found
        self._wanted: set[str] = set()
        self._deaths: dict[str, int] = {}
        self._under_way: dict[str, float] = {}
        self._work = self._work_done = 0.0
        self.done = self.known = 0

    def run(self, stages: Iterable[Stage]) -> None:
        """Do the tasks of all stages. Where workers are free, those of later stages run beside those of earlier ones.

        Raises `OutOfTime` when the time is up.
        """
        self._queue: list[tuple[int, int, Task]] = []
        self._stages: list[_Waiting] = []
        self._flying: dict[Future[Result], tuple[int, int, Task]] = {}
        for priority, stage in enumerate(stages):
            waiting = _Waiting(stage, priority)
            self._stages.append(waiting)
            self._go_on(waiting)
        while self._queue or self._flying:
            self._report()
            while self._queue and len(self._flying) < self._workers.count:
                self._check_time()
                entry = heappop(self._queue)
                self._flying[self._workers.submit(entry[2], self._teller(entry[2]))] = entry
            for future in wait(self._flying, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED).done:
                entry = self._flying.pop(future)
                try:
                    result = future.result()
                except BrokenExecutor as error:
                    # A process died; what it and the others had under way is done again.
                    self._deaths[entry[2].key] = self._deaths.get(entry[2].key, 0) + 1
                    if self._deaths[entry[2].key] == _ATTEMPTS:
                        raise Stopped(
                            f"Worker processes keep dying, perhaps for want of memory ({type(error).__name__}). The tasks "
                            "that were finished are kept; run it again with fewer workers to resume."
                        ) from None
                    heappush(self._queue, entry)
                    continue
                self._keep(entry[2], result)
            self._workers.look()
            self._check_time()
        self._report()

    def end(self) -> None:
        """Report that nothing is left, however much was expected."""
        self._expected = 0.0
        self._report()

    def _go_on(self, waiting: _Waiting) -> None:
        """Let a stage go on until it needs a result that is not there."""
        while not waiting.missing:
            for name in waiting.names:  # in the order in which they were asked for, whichever was done first
                waiting.into[name] = waiting.into.pop(name)
            try:
                tasks, waiting.into = next(waiting.stage)
            except StopIteration:
                return
            waiting.names = list(tasks)
            for name, task in tasks.items():
                key = task.key
                if key not in self._found and key not in self._wanted:
                    stored = self._store.get(task)
                    self.known += 1
                    self._work += task.work
                    if stored is None:
                        heappush(self._queue, (waiting.priority, self.known, task))
                        self._wanted.add(key)
                    else:
                        self._found[key] = stored
                        self._count(task)
                if key in self._found:
                    waiting.into[name] = self._found[key]
                else:
                    waiting.missing.setdefault(key, []).append(name)

    def _keep(self, task: Task, result: Result) -> None:
        key = task.key
        # Through JSON, so that a fresh result and one from the store are the same to the last bit.
        self._found[key] = Result(json.loads(json.dumps(result.numbers)), result.arrays)
        self._store.put(task, result)
        self._count(task)
        for waiting in self._stages:
            names = waiting.missing.pop(key, ())
            for name in names:
                waiting.into[name] = self._found[key]
            if names:
                self._go_on(waiting)
        self._report()
        if self._finished is not None:
            self._finished()

    def _count(self, task: Task) -> None:
        self._under_way.pop(task.key, None)
        self.done += 1
        self._work_done += task.work

    def _teller(self, task: Task) -> Told:
        def told(share: float) -> None:
            self._under_way[task.key] = share * task.work
            self._report()
            self._check_time()

        return told

    def _check_time(self) -> None:
        if self.until is not None and time.monotonic() > self.until:
            raise OutOfTime

    def _report(self) -> None:
        if self._progress is not None:
            done = self._work_done + sum(self._under_way.values())
            self._progress(round(1000 * done), round(1000 * max(self._work, self._expected)))


@contextmanager
def workers_of(workers: int | None, cluster: str | None) -> Iterator[Workers]:
    """Give the cores of this machine (all by default), or a Dask cluster by the address of its scheduler."""
    if cluster is not None:
        with _cluster(cluster) as found:
            yield found
        return
    count = how_many(workers)
    if count == 1:
        yield _Here()
        return
    processes = _Processes(count)
    try:
        yield processes
    except BaseException:
        processes.stop()
        raise
    finally:
        processes.close()


def how_many(workers: int | None) -> int:
    """How many processes to use on this machine."""
    import joblib

    return int(joblib.cpu_count()) if workers is None else checks.whole("workers", workers, least=1)


class _Here:
    """The process that runs the audit."""

    cores = count = 1
    _compiled = False

    def prepare(self) -> None:
        if not self._compiled:
            kernels.ensure_compiled()
            self._compiled = True

    def submit(self, task: Task, told: Told) -> Future[Result]:
        self.prepare()
        future: Future[Result] = Future()
        future.set_result(_call(task, told))
        return future

    def look(self) -> None:
        pass


class _Processes(_Here):
    """Processes of this machine. Each keeps to one core: the tasks are what runs side by side.

    How far they are goes through a file of numbers. The data do not go through a file: it would hold the truth, and not in the
    output's folder.
    """

    def __init__(self, count: int) -> None:
        self.cores = self.count = count
        self._folder = tempfile.TemporaryDirectory(prefix="rekindle-", ignore_cleanup_errors=True)
        self._path = Path(self._folder.name) / "shares"
        self._shares = np.memmap(self._path, np.float64, mode="w+", shape=(count,))
        self._told: dict[int, tuple[Future[Result], Told]] = {}
        self._executor: Any = None

    def _pool(self) -> Any:
        """The processes, started again after one of them died."""
        from joblib.externals import loky

        self.prepare()
        kinds = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA", "NUMEXPR")
        self._executor = loky.get_reusable_executor(
            max_workers=self.count, timeout=300, env={f"{kind}_NUM_THREADS": "1" for kind in kinds}
        )
        return self._executor

    def submit(self, task: Task, told: Told) -> Future[Result]:
        slot = next(slot for slot in range(self.count) if slot not in self._told or self._told[slot][0].done())
        self._shares[slot] = 0.0
        future: Future[Result] = self._pool().submit(_call_elsewhere, task, self._path, slot)
        self._told[slot] = future, told
        return future

    def look(self) -> None:
        for slot, (future, told) in self._told.items():
            if not future.done() and self._shares[slot]:
                told(float(self._shares[slot]))

    def stop(self) -> None:
        """End the processes with what they have under way."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)

    def close(self) -> None:
        del self._shares
        self._folder.cleanup()


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
    try:
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

        yield _OnCluster(client, address)


class _OnCluster:
    """The workers of a Dask cluster, with tasks enough that none of them waits. When one dies, the others do its tasks."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        self.prepare = kernels.ensure_compiled
        self._sent: dict[int, tuple[Any, Any]] = {}

    @property
    def cores(self) -> int:
        return max(1, int(sum(self._client.nthreads().values())))

    @property
    def count(self) -> int:
        return 2 * self.cores + 2

    def submit(self, task: Task, told: Told) -> Future[Result]:
        dask: Any = importlib.import_module("dask")
        future: Future[Result] = Future()
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            there = self._client.submit(task.call, *map(self._send, task.arguments), pure=False)

        def ended(there: Any) -> None:
            try:
                future.set_result(there.result())
            except BaseException as error:  # it is raised where the result is asked for
                future.set_exception(self._gave_up(error))
            there.release()

        there.add_done_callback(ended)
        return future

    def _send(self, value: Any) -> Any:
        """Data go to the cluster once, however many tasks need them; as a task, so that no dead worker loses them."""
        if not isinstance(value, (Counts, Release, Trajectories, Result)):
            return value
        if id(value) not in self._sent:
            self._sent[id(value)] = value, self._client.submit(_hold, value, pure=False)
        return self._sent[id(value)][1]

    def _gave_up(self, error: BaseException) -> BaseException:
        distributed: Any = importlib.import_module("distributed")
        if not isinstance(error, (distributed.KilledWorker, CancelledError)):
            return error
        return Stopped(
            f"The cluster at {self._address} gave up ({type(error).__name__}: {error}). Do its workers have enough memory? "
            "The tasks that were finished are kept; run it again to resume."
        )

    def look(self) -> None:
        pass


def _hold(value: Any) -> Any:
    return value


def _call(task: Task, told: Told) -> Result:
    return task.call(*task.arguments, told) if task.reports else task.call(*task.arguments)


def _call_elsewhere(task: Task, path: Path, slot: int) -> Result:
    shares = np.memmap(path, np.float64, mode="r+")

    def told(share: float) -> None:
        shares[slot] = share

    return _call(task, told)
