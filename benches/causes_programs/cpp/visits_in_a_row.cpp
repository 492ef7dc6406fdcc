// Each thread counts visits in a structure of its own; the structures are the elements of one vector,
// and smaller than a line of the cache.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

struct Visits {
    std::atomic<uint64_t> pages{0}, bytes{0};
};

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<Visits> visits(threads);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([&own = visits[t], threads, t] {
            uint64_t seed = t + 1;
            for (int i = 0; i < 40000000 / threads; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                own.pages.fetch_add(1, std::memory_order_relaxed);
                own.bytes.fetch_add(seed >> 54, std::memory_order_relaxed);
            }
        });
    }
    for (auto &one : all) one.join();
}
