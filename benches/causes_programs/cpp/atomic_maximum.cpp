// Threads that keep a common maximum by compare-and-swap at each step: one line of the cache goes to
// and fro.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

static std::atomic<uint64_t> most{0};

static void body(uint64_t steps, uint64_t seed) {
    for (uint64_t i = 0; i < steps; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t seen = most.load();
        while (!most.compare_exchange_weak(seen, seen + (seed & 1) + 1)) {
        }
    }
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++) all.emplace_back(body, 30000000 / threads, i + 1);
    for (auto &one : all) one.join();
}
