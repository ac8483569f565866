"""A large task of an audit: it runs in a thread of this process, and its parts wherever there is room."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

from rekindle.attacks.habits.parallel import POOL, do_part
from rekindle.auditing.clock import ELSEWHERE
from rekindle.auditing.tasks import Result, Task


@dataclass(eq=False)
class Job:
    """What a worker is given to do.

    Attributes
    ----------
    task
        What it is.
    key
        The name of its result, of a whole task.
    wanted
        Where the result of a part is waited for; None for a whole task.
    deaths
        How often a worker died of it.
    """

    task: Task
    key: str = ""
    wanted: Future[Any] | None = None
    deaths: int = 0


class Large:
    """A task under way, whose parts the runner hands to the workers.

    What an attack does between its parts needs all of them, so it is done here. Nothing can end a thread within a kernel: it is a
    daemon, so that a program that is interrupted need not wait for it, and ends when it next tells or asks for anything.

    Parameters
    ----------
    job
        The whole task.
    workers
        How many parts can be under way.

    Attributes
    ----------
    result
        Of the whole task.
    news
        Done when there is a part to be handed out; the runner puts another in its place.
    share
        Of the task that is done.
    """

    def __init__(self, job: Job, workers: Callable[[], int]) -> None:
        self.job, self._count = job, workers
        self.result: Future[Result] = Future()
        self.news: Future[None] = Future()
        self.share = self._seconds = 0.0
        self._parts: deque[Job] = deque()
        self._wanted: set[Future[Any]] = set()
        self._stopped = False
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def workers(self) -> int:
        """How many parts can be under way."""
        return self._count()

    def submit(self, work: Callable[..., Any], part: tuple[Any, ...]) -> Future[Any]:
        """Have a part done when there is room; called by the attack, in its thread."""
        wanted: Future[Any] = Future()
        self._wanted.add(wanted)
        if self._stopped:
            wanted.cancel()
        self._parts.append(Job(Task(_timed, (work, part)), wanted=wanted))
        if not self.news.done():
            self.news.set_result(None)
        return wanted

    def next_part(self) -> Job | None:
        """Give a part that is still wanted and that no worker has; None where there is none."""
        while self._parts:
            if not (job := self._parts.popleft()).wanted.cancelled():  # type: ignore[union-attr]
                return job
        return None

    def put_back(self, job: Job) -> None:
        """Have a part done once more."""
        self._parts.appendleft(job)

    def hand_over(self, job: Job, found: tuple[Any, float]) -> None:
        """Give the attack the result of a part, and add the processor time that it took."""
        result, seconds = found
        self._seconds += seconds
        if job.wanted is not None and job.wanted.set_running_or_notify_cancel():
            self._wanted.discard(job.wanted)
            job.wanted.set_result(result)

    def stop(self) -> None:
        """Wait for nothing any more."""
        self._stopped = True
        for wanted in list(self._wanted):
            wanted.cancel()

    def _run(self) -> None:
        POOL.set(self)
        ELSEWHERE.set(lambda: self._seconds)
        try:
            self.result.set_result(self.job.task.do(self._told))
        except BaseException as error:  # it is raised where the result is asked for
            self.result.set_exception(error)

    def _told(self, share: float) -> None:
        if self._stopped:
            raise CancelledError
        self.share = share


def _timed(work: Callable[..., Any], part: tuple[Any, ...]) -> tuple[Any, float]:
    begin = time.thread_time()
    return do_part(work, part), time.thread_time() - begin
