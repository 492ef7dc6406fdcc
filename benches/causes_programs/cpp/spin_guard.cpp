// A lock of the program's own that tests, pauses, and exchanges; a guard of scope takes it. The compiler
// makes all of it a part of the worker. It is held for two thirds of each operation.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

static uint64_t compute(uint64_t iterations, uint64_t seed) {
    for (uint64_t i = 0; i < iterations; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(seed));
    }
    return seed;
}

struct alignas(64) Latch {
    std::atomic<bool> taken{false};
    void lock() {
        while (taken.exchange(true, std::memory_order_acquire)) {
            while (taken.load(std::memory_order_relaxed)) __builtin_ia32_pause();
        }
    }
    void unlock() { taken.store(false, std::memory_order_release); }
};

struct Guard {
    Latch &latch;
    explicit Guard(Latch &one) : latch(one) { latch.lock(); }
    ~Guard() { latch.unlock(); }
};

static Latch latch;
alignas(64) static uint64_t ledger = 1;

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([=] {
            uint64_t own = t + 1;
            for (int i = 0; i < 2500 / threads; i++) {
                own = compute(5000 + (own >> 33) % 20000, own);
                Guard guard(latch);
                ledger = compute(20000 + (ledger >> 33) % 30000, ledger);
            }
        });
    }
    for (auto &one : all) one.join();
}
