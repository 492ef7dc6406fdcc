// Threads that refuse every other input by an exception, which is caught some calls further up.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

[[gnu::noinline]] static uint64_t checked(uint64_t input, int depth) {
    if (depth > 0) return checked(input, depth - 1) + 1;
    if (input & 1) throw std::invalid_argument("odd");
    return input >> 32;
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([=] {
            uint64_t seed = t + 1, sum = 0;
            for (int i = 0; i < 600000 / threads; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                try {
                    sum += checked(seed >> 20, 6);
                } catch (const std::invalid_argument &refused) {
                    sum++;
                }
            }
            if (sum == 0) std::exit(1);
        });
    }
    for (auto &one : all) one.join();
}
