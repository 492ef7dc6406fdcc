// What the programs share: the command line, threads, and computing that no compiler leaves out.
//
// PROGRAM KIND THREADS OPERATIONS HELD APART, as of the programs in C (../c/plant.h).
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using Seed = std::uint64_t;

struct Asked {
    std::string kind;
    long threads, operations, held, apart;
};

[[gnu::noinline]] inline Seed work(Seed seed, long steps) {
    for (long step = 0; step < steps; step++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

inline Seed drawn(Seed &seed) { return seed = work(seed, 1); }

inline Asked asked(int count, char **arguments) {
    if (count != 6) {
        std::fprintf(stderr, "%s KIND THREADS OPERATIONS HELD APART\n", arguments[0]);
        std::exit(2);
    }
    return {arguments[1], std::atol(arguments[2]), std::atol(arguments[3]), std::atol(arguments[4]),
            std::atol(arguments[5])};
}

// Each thread does its part of the operations.
template <typename Operation> void in_threads(const Asked &asked, Operation operation) {
    std::vector<std::thread> started;
    for (long number = 0; number < asked.threads; number++)
        started.emplace_back([&, number] {
            Seed seed = 88172645463325252UL + static_cast<Seed>(number);
            for (long done = 0; done < asked.operations / asked.threads; done++)
                operation(seed);
        });
    for (auto &thread : started)
        thread.join();
}
