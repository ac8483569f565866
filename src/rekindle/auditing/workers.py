"""Where tasks run: on the cores of this machine or on a cluster; each one once, and kept as soon as it is finished."""

from __future__ import annotations

import importlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import rekindle
from rekindle import checks
from rekindle.assignment import kernels  # as a whole: this module has no kernel, so a change here compiles none again
from rekindle.auditing.large import Job, Large
from rekindle.auditing.store import Store, code_digest
from rekindle.auditing.tasks import Result, Task
from rekindle.errors import InvalidSetting, Stopped
from rekindle.frames import optional
from rekindle.model import Counts, Flows, Release, Trajectories
from rekindle.progress import Progress

_REACH_SECONDS = 15
_ATTEMPTS = 3
_LARGE = 10.0
"""Seconds of work from which on a task may be spread over all workers; for less that is not worth it."""
_LOOK_SECONDS = 1.0
"""How often the tasks under way are looked at."""

Told = Callable[[float], None]
"""Called with the share of a task that is done."""


Batch = tuple[Mapping[Any, Task], dict[Any, Result]]
"""Tasks by name, and where the result of each is put, under the same name, as soon as it is there."""


class OutOfTime(Exception):  # noqa: N818
    """The time for the tasks is up. It never leaves the audit."""


class Runner:
    """Does every task once, however often it is asked for, in the order in which they are asked for.

    Parameters
    ----------
    store
        Each result is kept as soon as it is there, by this process alone, whichever worker computed it.
    workers
        Where to compute.
    progress
        Called with the work done and all that is expected, in milliseconds of an ordinary core.
    expected
        How much work each task takes that is expected, in seconds of an ordinary core.
    until
        When the time is up, by `time.monotonic`; None for never.
    finished
        Called when a task is finished, after its result was put where it is wanted.

    Attributes
    ----------
    until
        As given; it may be changed.
    done, tasks
        How many tasks are done, and about how many there are.
    """

    def __init__(
        self,
        store: Store,
        workers: Workers,
        progress: Progress | None = None,
        *,
        expected: Sequence[float] = (),
        until: float | None = None,
        finished: Callable[[], None] | None = None,
    ) -> None:
        self._store, self._workers, self._progress = store, workers, progress
        self._expected, self.until, self._finished = sum(expected), until, finished
        self._found: dict[str, Result] = {}
        self._under_way: dict[str, float] = {}
        self._work = self._work_done = 0.0
        self.done, self._known, self._about = 0, 0, len(expected)

    @property
    def tasks(self) -> int:
        return max(self._known, self._about)

    def run(self, *batches: Batch) -> None:
        """Do all tasks, those of the first batches first.

        Raises `OutOfTime` when the time is up.
        """
        wanted: dict[str, list[tuple[Any, dict[Any, Result]]]] = {}
        queue: dict[str, Task] = {}
        for name, task, into in ((name, task, into) for tasks, into in batches for name, task in tasks.items()):
            key = self._store.key(task)
            wanted.setdefault(key, []).append((name, into))
            if key not in self._found and key not in queue:
                self._known += 1
                self._work += task.work
                if (stored := self._store.get(key)) is None:
                    queue[key] = task
                else:
                    self._count(key, task, stored)
            if key in self._found:
                into[name] = self._found[key]
        jobs, flying = [Job(task, key) for key, task in queue.items()], dict[Future[Any], Job]()
        large: Large | None = None
        try:
            while jobs or flying or large:
                self._report()
                large = self._begin(jobs, flying, large)
                ends = [*flying] if large is None else [*flying, large.result, large.news]
                for future in wait(ends, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED).done:
                    if large is not None and future is large.result:
                        self._finish(large.job, large.result.result(), wanted)
                        large = None
                        self._workers.forget()
                    elif (job := flying.pop(future, None)) is None:
                        continue
                    elif job.wanted is None:
                        if self._died(future, job):
                            jobs.insert(0, job)
                        else:
                            self._finish(job, future.result(), wanted)
                    elif large is not None:
                        if self._died(future, job):
                            large.put_back(job)
                        else:
                            large.hand_over(job, future.result())
                if large is not None:
                    self._under_way[large.job.key] = large.share * large.job.task.work
                self._workers.look()
                self.check_time()
        finally:
            if large is not None:
                large.stop()
        for tasks, into in batches:
            for name in tasks:  # in the order in which they were asked for, whichever was done first
                into[name] = into.pop(name)
        self._report()

    def _begin(self, jobs: list[Job], flying: dict[Future[Any], Job], large: Large | None) -> Large | None:
        """Begin as much as there is room for, and give the large task that is under way.

        What is most of the work that is left would go on alone when all else is done. It is spread over all workers instead, one such
        task at a time. Its parts come first; one worker's room is left for what it does itself between them.
        """
        if large is not None and large.news.done():
            large.news = Future()
        while len(flying) < self._workers.count:
            self.check_time()
            job = None if large is None else large.next_part()
            if job is None:
                whole = [one for one in flying.values() if one.wanted is None]
                if large is not None and len(whole) >= self._workers.count - 1:
                    break
                left = sum(one.task.work for one in (*jobs, *whole, *([] if large is None else [large.job])))
                job = next((one for one in jobs if large is None or not self._is_large(one.task, left)), None)
                if job is None:
                    break
                jobs.remove(job)
                if self._is_large(job.task, left):
                    self._workers.prepare()
                    large = Large(job, lambda: self._workers.count)
                    continue
            flying[self._workers.submit(job.task, self._teller(job))] = job
        return large

    def _is_large(self, task: Task, left: float) -> bool:
        """Whether a task is worth more than one core, by its share of the work that is left."""
        return task.in_parts and task.work >= _LARGE and round(self._workers.cores * task.work / left) > 1

    def _died(self, future: Future[Any], job: Job) -> bool:
        """Whether a process died, so that what it and the others had under way is done again."""
        error = future.exception()
        if not isinstance(error, BrokenExecutor):
            return False
        job.deaths += 1
        if job.deaths == _ATTEMPTS:
            raise Stopped(
                f"Worker processes keep dying, perhaps for want of memory ({type(error).__name__}). The tasks "
                "that were finished are kept; run it again with fewer workers to resume."
            )
        return True

    def _finish(self, job: Job, result: Result, wanted: Mapping[str, list[tuple[Any, dict[Any, Result]]]]) -> None:
        """Keep a result, and put it wherever it is wanted."""
        self._store.put(job.key, result)
        # Through JSON, so that a fresh result and one from the store are the same to the last bit.
        self._count(job.key, job.task, Result(json.loads(json.dumps(result.numbers)), result.arrays))
        for name, into in wanted[job.key]:
            into[name] = self._found[job.key]
        self._report()
        if self._finished is not None:
            self._finished()

    def end(self) -> None:
        """Report that nothing is left, however much was expected."""
        self._expected = 0.0
        self._report()

    def check_time(self) -> None:
        """Raise `OutOfTime` when the time is up."""
        if self.until is not None and time.monotonic() > self.until:
            raise OutOfTime

    def _count(self, key: str, task: Task, result: Result) -> None:
        self._found[key] = result
        self._under_way.pop(key, None)
        self.done += 1
        self._work_done += task.work

    def _teller(self, job: Job) -> Told:
        def told(share: float) -> None:
            self._under_way[job.key] = share * job.task.work
            self._report()
            self.check_time()

        return told

    def _report(self) -> None:
        if self._progress is not None:
            done = self._work_done + sum(self._under_way.values())
            self._progress(round(1000 * done), round(1000 * max(self._work, self._expected)))


@contextmanager
def workers_of(workers: int | None, cluster: str | None) -> Iterator[Workers]:
    """Give the cores of this machine (all by default), or a Dask cluster by the address of its scheduler."""
    if cluster is not None:
        with _connected(cluster) as client:
            yield _Cluster(client, cluster)
        return
    import joblib

    count = int(joblib.cpu_count()) if workers is None else checks.whole("workers", workers, least=1)
    if count == 1:
        yield Workers()
        return
    with tempfile.TemporaryDirectory(prefix="rekindle-", ignore_cleanup_errors=True) as folder:
        processes = _Processes(count, Path(folder) / "shares")
        try:
            yield processes
        except BaseException:
            processes.stop()
            raise


class Workers:
    """Somewhere to compute; here, the process that runs the audit.

    Attributes
    ----------
    cores
        How many tasks run side by side.
    count
        How many are under way at most.
    """

    cores = count = 1
    _compiled = False

    def prepare(self) -> None:
        """Compile the kernels, unless that was done."""
        if not self._compiled:
            kernels.ensure_compiled()
            self._compiled = True

    def submit(self, task: Task, told: Told) -> Future[Any]:
        """Begin a task, or a part of one, which keeps to one core."""
        self.prepare()
        future: Future[Any] = Future()
        future.set_result(task.do(told))
        return future

    def forget(self) -> None:
        """Let go of what was kept for the parts of a large task."""

    def look(self) -> None:
        """Tell how far the tasks under way are."""


class _Processes(Workers):
    """Processes of this machine.

    How far they are goes through a file of numbers. The data do not go through a file: it would hold the truth, and not in the
    output's folder.
    """

    def __init__(self, count: int, path: Path) -> None:
        self.cores = self.count = count
        self._path, self._shares = path, np.memmap(path, np.float64, mode="w+", shape=(count,))
        self._told: dict[int, tuple[Future[Any], Told]] = {}
        self._executor: Any = None

    def submit(self, task: Task, told: Told) -> Future[Any]:
        from joblib.externals import loky

        self.prepare()
        kinds = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA", "NUMEXPR")
        # It is started again after one of its processes died.
        self._executor = loky.get_reusable_executor(
            max_workers=self.count, timeout=300, env={f"{kind}_NUM_THREADS": "1" for kind in kinds}
        )
        slot = next(slot for slot in range(self.count) if slot not in self._told or self._told[slot][0].done())
        self._shares[slot] = 0.0
        future: Future[Any] = self._executor.submit(_do, task, self._path, slot)
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


def _do(task: Task, path: Path, slot: int) -> Any:
    shares = np.memmap(path, np.float64, mode="r+")
    return task.do(lambda share: shares.__setitem__(slot, share))


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A client of the Dask cluster at an address, whose workers have the same Rekindle as this machine."""
    distributed = optional("distributed", extra="cluster", what="A cluster")
    try:
        client = distributed.Client(address, timeout=_REACH_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidSetting(
            f"The cluster at {address} cannot be reached ({type(error).__name__}: {error}). Is its scheduler running, and "
            "is the address that of the scheduler, such as tcp://10.0.0.1:8786?"
        ) from None
    with client, client.as_current():
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=_REACH_SECONDS)
        there = client.run(code_digest, on_error="return")
        if not there:
            raise InvalidSetting(
                f"The cluster at {address} has no workers; start some with: dask worker {address}"
            ) from None
        if other := sorted(where for where, code in there.items() if code != code_digest()):
            raise InvalidSetting(
                f"{len(other)} workers of the cluster at {address} have another Rekindle than this machine "
                f"({rekindle.__version__}), or none: {', '.join(other)}. Install the same on all."
            )
        yield client


class _Cluster(Workers):
    """The workers of a Dask cluster, with enough under way that none of them waits. When one dies, the others do its work."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        self._sent: dict[int, tuple[Any, Any]] = {}

    @property
    def cores(self) -> int:  # type: ignore[override]
        return max(1, int(sum(self._client.nthreads().values())))

    @property
    def count(self) -> int:  # type: ignore[override]
        return 2 * self.cores + 2

    def submit(self, task: Task, told: Told) -> Future[Any]:
        dask: Any = importlib.import_module("dask")
        future: Future[Any] = Future()
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
        if not isinstance(value, (Counts, Flows, Release, Trajectories, partial)):
            return value
        if id(value) not in self._sent:
            self._sent[id(value)] = value, self._client.submit(_hold, value, pure=False)
        return self._sent[id(value)][1]

    def forget(self) -> None:
        self._sent = {key: sent for key, sent in self._sent.items() if not isinstance(sent[0], partial)}

    def _gave_up(self, error: BaseException) -> BaseException:
        distributed: Any = importlib.import_module("distributed")
        if not isinstance(error, (distributed.KilledWorker, CancelledError)):
            return error
        return Stopped(
            f"The cluster at {self._address} gave up ({type(error).__name__}: {error}). Do its workers have enough memory? "
            "The tasks that were finished are kept; run it again to resume."
        )


def _hold(value: Any) -> Any:
    return value
