"""Doing many cells: on the cores of this machine or on a cluster, remembering each one that is finished."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import json
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import rekindle
from rekindle.auditing.tasks import Result
from rekindle.errors import InvalidFile, InvalidSetting, Stopped
from rekindle.io.safety.files import new_file
from rekindle.io.safety.untrusted import read_arrays
from rekindle.model import Counts, Release, Trajectories

__all__ = ["Store", "Task", "digest", "run", "workers_of"]

Progress = Callable[[int, int | None], None]

_REACH_SECONDS = 15
_ATTEMPTS = 3


@dataclass(frozen=True)
class Task:
    """One cell: a function of this package and its arguments, and what tells it from all others.

    Attributes
    ----------
    identity
        Plain values that name the input, the settings and the seed; equal identities have equal results.
    call, arguments
        What to do.
    """

    identity: tuple[Any, ...]
    call: Callable[..., Result]
    arguments: tuple[Any, ...]

    @property
    def key(self) -> str:
        """A name for the result: a digest of the identity and of the code that computes it."""
        text = json.dumps([_code(), self.call.__name__, self.identity], sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()[:40]


class Store:
    """Finished cells, one npz file each, written whole or not at all. Without a folder nothing is kept.

    Parameters
    ----------
    folder
        Where the cells are, or None. It is made when the first cell is kept.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise InvalidFile(self.folder, "finished cells are kept in a folder, but this is a file.")

    def get(self, task: Task) -> Result | None:
        """Give the result of a task that was finished before; None where there is none, or its file is damaged."""
        if self.folder is None:
            return None
        try:
            arrays = read_arrays(self.folder / f"{task.key}.npz")
            return Result(json.loads(arrays.pop("numbers").tobytes()), arrays)
        except (ValueError, KeyError, RecursionError):
            return None

    def put(self, task: Task, result: Result) -> None:
        """Keep the result of a task."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        numbers = np.frombuffer(json.dumps(result.numbers).encode(), np.uint8)
        with (
            new_file(self.folder / f"{task.key}.npz", overwrite=True, private=True) as temporary,
            open(temporary, "wb") as file,
        ):
            np.savez_compressed(file, allow_pickle=False, numbers=numbers, **result.arrays)


class Workers(Protocol):
    """Somewhere to compute: gives the position of each task with its result, in the order in which they finish."""

    def __call__(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]: ...


def run(
    tasks: Sequence[Task], *, store: Store, workers: Workers, finished: Callable[[], None] = lambda: None
) -> list[Result]:
    """Do every task once, or take its result from the store; results come in the order of the tasks.

    Parameters
    ----------
    tasks
        Those with the same key are done once.
    store
        Each result is kept as soon as it is there, by this process alone: whoever computed it, it counts once.
    workers
        Where to compute.
    finished
        Called for each task that has a result.
    """
    found: dict[str, Result] = {}
    missing: dict[str, Task] = {}
    keys = [task.key for task in tasks]
    for task, key in zip(tasks, keys, strict=True):
        if key not in found and key not in missing:
            stored = store.get(task)
            if stored is None:
                missing[key] = task
            else:
                found[key] = stored
    for key in keys:
        if key in found:
            finished()
    todo = list(missing.values())
    for position, result in workers(todo):
        key = todo[position].key
        # Through JSON, so that a fresh result and one from the store are the same to the last bit.
        found[key] = Result(json.loads(json.dumps(result.numbers)), result.arrays)
        store.put(todo[position], result)
        for _ in range(keys.count(key)):
            finished()
    return [found[key] for key in keys]


@contextmanager
def workers_of(workers: int | None, cluster: str | None) -> Iterator[Workers]:
    """Give the cores of this machine (all by default), or a Dask cluster by the address of its scheduler."""
    if cluster is not None:
        with _cluster(cluster) as found:
            yield found
        return
    import joblib

    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InvalidSetting(f"The number of workers is {workers!r}; it must be a whole number of at least 1.")
    count = joblib.cpu_count() if workers is None else workers

    def on_cores(tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
        if count == 1 or len(tasks) < 2:
            yield from ((position, _call(task)) for position, task in enumerate(tasks))
            return
        left = dict(enumerate(tasks))
        for attempt in range(_ATTEMPTS):
            # Each process keeps to one core: the cells are what runs side by side.
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
                            f"Worker processes keep dying, perhaps for want of memory ({type(error).__name__}). The cells "
                            "that were finished are kept; start again with fewer workers to go on."
                        ) from None

    yield on_cores


def _quietly(found: Generator[tuple[int, Result], None, None]) -> Iterator[tuple[int, Result]]:
    """Go through results without joblib's warning of cells that an interruption leaves undone."""
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
        other = {where: code for where, code in client.run(_code_there, on_error="return").items() if code != _code()}
        if other:
            raise InvalidSetting(
                f"{len(other)} workers of the cluster at {address} have another Rekindle than this machine "
                f"({rekindle.__version__}), or none: {', '.join(sorted(other))}. Install the same on all."
            )

        def on_cluster(tasks: Sequence[Task]) -> Iterator[tuple[int, Result]]:
            shared: dict[int, Any] = {}

            def send(value: Any) -> Any:
                """Data go to the cluster once, however many cells need them; as a task, so that no dead worker loses them."""
                if not isinstance(value, (Counts, Release, Trajectories, Result)):
                    return value
                if id(value) not in shared:
                    shared[id(value)] = client.submit(_hold, value, pure=False)
                return shared[id(value)]

            # When a worker dies, the scheduler has its cells done again by the others.
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
                        "memory? The cells that were finished are kept; start again to go on."
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


def digest(data: Counts | Release | Trajectories | None) -> str | None:
    """A digest of data, for the identity of tasks."""
    if data is None:
        return None
    value = hashlib.sha256(type(data).__name__.encode())
    array: NDArray[Any] = data.cells if isinstance(data, Trajectories) else data.values
    for part in (array, data.locations.xy_km):
        value.update(f"{part.dtype.str}{part.shape}".encode())
        value.update(np.ascontiguousarray(part).data)
    names: list[Any] = list(data.people_ids) if isinstance(data, Trajectories) else []
    names += [one.to_json() for one in data.defences] if isinstance(data, Release) else []
    value.update(json.dumps([data.locations.ids, names, data.calendar.to_json()]).encode())
    return value.hexdigest()


@cache
def _code() -> str:
    """The version, and a digest of the code and of the parts whose numbers may differ."""
    value = hashlib.sha256()
    folder = Path(inspect.getfile(rekindle)).parent
    for room in ("model", "assignment", "attacks", "defences", "repairing", "evaluation", "auditing/tasks.py"):
        for file in sorted((folder / room).rglob("*.py")) or [folder / room]:
            value.update(file.read_bytes())
    parts = {name: importlib.metadata.version(name) for name in ("numpy", "scipy")}
    return f"{rekindle.__version__} {value.hexdigest()} {parts}"


def _code_there() -> str:
    return _code()
