// A map behind a std::mutex; each operation works on it for two thirds of its time.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex table_mutex;
static std::map<uint64_t, uint64_t> table;

static void operate(uint64_t &seed) {
    uint64_t own = seed;
    for (int i = 0; i < 4000; i++) own = own * 6364136223846793005u + 1;
    {
        std::lock_guard<std::mutex> guard(table_mutex);
        for (int i = 0; i < 60; i++) {
            own = own * 6364136223846793005u + 1;
            table[own >> 48] += i;
        }
    }
    seed = own;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([=] {
            uint64_t seed = t + 1;
            for (int i = 0; i < 24000 / threads; i++) operate(seed);
        });
    }
    for (auto &thread : all) thread.join();
}
