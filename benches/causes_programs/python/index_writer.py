"""Processes that count words, and one process that merges what they find into the index.

A document takes a worker some 0.1 ms (300 words split and counted), the index 0.5 ms or more
(every word's postings are looked up, kept in order and cut), and the queue between them holds
16 documents. So the one that merges is always busy with one worker already, and the others wait
until the queue has room: a stage limits, at either level.
"""

import bisect
import multiprocessing
import sys
from typing import Any

DOCUMENTS, WORDS, KEPT = 800, 300, 64


def count(first: int, step: int, found: "multiprocessing.Queue[Any]") -> None:
    for document in range(first, DOCUMENTS, step):
        seed = document + 1
        text = []
        for _ in range(WORDS // 10):
            seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
            some = f"w{seed % 997} of x{seed % 499} the y{seed % 251} to z{seed % 1009}"
            text.append(f"{some} and a in")
        counts: dict[str, int] = {}
        for word in " ".join(text).split():
            counts[word] = counts.get(word, 0) + 1
        found.put((document, counts))
    found.put(None)


def merge(workers: int, found: "multiprocessing.Queue[Any]") -> None:
    postings: dict[str, list[tuple[int, int, int]]] = {}
    ended = 0
    while ended < workers:
        item = found.get()
        if item is None:
            ended += 1
            continue
        document, counts = item
        for word, number in counts.items():
            weight = 0
            for letter in word:
                weight = (weight * 31 + ord(letter)) & 0xFFFFFFFF
            for _ in range(number + 40):
                weight = (weight * 1103515245 + 12345) & 0x7FFFFFFF
            listed = postings.setdefault(word, [])
            bisect.insort(listed, (weight % 1000, number, document))
            del listed[KEPT:]
    print(len(postings))


if __name__ == "__main__":
    workers = int(sys.argv[1])
    context = multiprocessing.get_context("fork")
    found = context.Queue(16)
    index = context.Process(target=merge, args=(workers, found))
    index.start()
    counting = [context.Process(target=count, args=(n, workers, found)) for n in range(workers)]
    for process in counting:
        process.start()
    for process in counting:
        process.join()
    index.join()
