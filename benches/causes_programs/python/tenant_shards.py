"""Invoices of 31 tenants, each process with the tenants of its shard; tenant 0 has 70 % of them.

With 2 processes the first has 85 % of the work and the second 15 %, with 4 the first has 77 %: it
runs on alone, a gain of 1.2 to 1.3. They are forked after 5 ms and share nothing: imbalance.
"""

import multiprocessing
import sys

INVOICES = 24_000


def tenant_of(invoice: int) -> int:
    part = invoice * 37 % 100
    return 0 if part < 70 else part - 69


def amount(invoice: int) -> int:
    cents = invoice
    for position in range(300):
        cents = (cents * 31 + position) % 1_000_003
    return cents


def bill(invoices: list[int], answers: "multiprocessing.SimpleQueue[int]") -> None:
    answers.put(sum(amount(invoice) for invoice in invoices))


def main() -> None:
    workers = int(sys.argv[1])
    shards: list[list[int]] = [[] for _ in range(workers)]
    for invoice in range(INVOICES):
        shards[tenant_of(invoice) % workers].append(invoice)
    answers: multiprocessing.SimpleQueue[int] = multiprocessing.SimpleQueue()
    processes = [multiprocessing.Process(target=bill, args=(shard, answers)) for shard in shards]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print(sum(answers.get() for _ in processes))


if __name__ == "__main__":
    main()
