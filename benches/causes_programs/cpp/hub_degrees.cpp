// The degrees of a graph's vertices, counted by atomic additions in one shared array. Half of the
// edges lead to eight hubs, whose counters are one cache line: alone an addition takes 20 cycles,
// with two workers the line travels for most of them (100 cycles and more), so two are slower than
// one. A mutex is there too, but taken once in 65,536 edges, for some nanoseconds: coherency.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

constexpr uint32_t vertices = 1u << 16, hubs = 8;
constexpr uint64_t edges = 40'000'000;

static std::vector<std::atomic<uint32_t>> degrees(vertices);
static std::mutex progress_mutex;
static uint64_t progress;

static void count(uint64_t number, uint64_t seed) {
    for (uint64_t edge = 0; edge < number; edge++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t random = seed >> 32;
        uint32_t target = random & 0x80000000u ? random % hubs : (random >> 8) % vertices;
        degrees[target].fetch_add(1, std::memory_order_relaxed);
        if ((edge & 0xffff) == 0xffff) {
            std::lock_guard<std::mutex> guard(progress_mutex);
            progress += 0x10000;
        }
    }
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::thread> counters;
    for (int t = 0; t < threads; t++) counters.emplace_back(count, edges / threads, t + 1);
    for (auto &counter : counters) counter.join();
    std::printf("%u %llu\n", degrees[0].load(), static_cast<unsigned long long>(progress));
}
