// A table under a std::shared_mutex that is read by all and, rarely, changed. The first argument
// after the threads is how many steps a reader computes while it holds the lock, the second how
// many reads there are.
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::shared_mutex mutex;
static uint64_t table[64];

static uint64_t compute(uint64_t iterations, uint64_t seed) {
    for (uint64_t i = 0; i < iterations; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(seed));
    }
    return seed;
}

int main(int argc, char **argv) {
    if (argc < 4) return 1;
    const int threads = std::atoi(argv[1]);
    const uint64_t steps = std::strtoull(argv[2], nullptr, 10);
    const long reads = std::atol(argv[3]);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([=] {
            uint64_t own = t + 1;
            for (long i = 0; i < reads / threads; i++) {
                if (i % 200 == 199) {
                    std::unique_lock<std::shared_mutex> writing(mutex);
                    table[own >> 58] = own;
                } else {
                    std::shared_lock<std::shared_mutex> reading(mutex);
                    own = compute(steps, own + table[own >> 58]);
                }
            }
        });
    }
    for (auto &one : all) one.join();
}
