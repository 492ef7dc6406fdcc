// Ten rounds of threads of their own; after each the main thread merges, for a quarter of the work.
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

static uint64_t compute(uint64_t iterations, uint64_t seed) {
    for (uint64_t i = 0; i < iterations; i++) {
        seed = seed * 6364136223846793005u + 1;
        __asm__ volatile("" : "+r"(seed));
    }
    return seed;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    for (int round = 0; round < 10; round++) {
        std::vector<std::thread> all;
        for (int t = 0; t < threads; t++) {
            all.emplace_back([=] { compute(30000000 / threads, t); });
        }
        for (auto &thread : all) thread.join();
        compute(10000000, round);
    }
}
