"""Prepares the next items in a thread while the present one is worked on."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Prefetcher(Generic[T, R]):
    """Iterates over `prepare(item)` in order; leaving the `with` block ends the thread."""

    def __init__(self, items: Iterable[T], prepare: Callable[[T], R], depth: int = 3) -> None:
        """At most `depth` prepared items wait."""
        self._items = items
        self._prepare = prepare
        self._ready: queue.Queue[R | BaseException | None] = queue.Queue(depth)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)

    def __enter__(self) -> "Prefetcher[T, R]":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    def __iter__(self) -> Iterator[R]:
        while (item := self._ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def _run(self) -> None:
        try:
            for item in self._items:
                if not self._hand_over(self._prepare(item)):
                    return
            self._hand_over(None)
        except BaseException as err:  # raised again where the items are read
            self._hand_over(err)

    def _hand_over(self, item: R | BaseException | None) -> bool:
        """False when nobody wants it any more."""
        while not self._closing.is_set():
            try:
                self._ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False
