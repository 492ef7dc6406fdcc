// Threads that make lists of texts, sort them, and let go of them: each allocates and frees all the
// time, from an arena of its own.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

static uint64_t sorted(uint64_t seed) {
    std::vector<std::string> texts;
    for (int i = 0; i < 200; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        texts.push_back(std::string(24 + (seed >> 60), 'a') + std::to_string(seed >> 40));
    }
    std::sort(texts.begin(), texts.end());
    return seed + texts.front().size();
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([=] {
            uint64_t seed = t + 1;
            for (int i = 0; i < 12000 / threads; i++) seed = sorted(seed);
            if (seed == 0) std::abort();
        });
    }
    for (auto &one : all) one.join();
}
