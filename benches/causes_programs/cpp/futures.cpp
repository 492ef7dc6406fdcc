// std::async in batches of as many tasks as threads, whose lengths differ much: who is done early
// waits for the longest of its batch.
#include <cstdint>
#include <cstdlib>
#include <future>
#include <vector>

static uint64_t compute(uint64_t iterations, uint64_t seed) {
    for (uint64_t i = 0; i < iterations; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(seed));
    }
    return seed;
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    uint64_t sum = 0;
    for (int task = 0; task < 200;) {
        std::vector<std::future<uint64_t>> batch;
        for (int i = 0; i < threads && task < 200; i++, task++) {
            const uint64_t length = task % 2 ? 2500000 : 200000;
            batch.push_back(std::async(std::launch::async, compute, length, task + 1));
        }
        for (auto &future : batch) sum += future.get();
    }
    return sum == 0;
}
