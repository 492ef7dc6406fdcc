// A sort: threads sort sixteen blocks, and the first thread alone reads the numbers before and
// merges the blocks afterwards.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

constexpr size_t NUMBERS = 2 << 20, BLOCKS = 16;

static std::vector<uint64_t> parsed() {
    std::vector<uint64_t> numbers(NUMBERS);
    uint64_t seed = 1;
    for (auto &number : numbers) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        number = std::strtoull(std::to_string(seed >> 32).c_str(), nullptr, 10);
    }
    return numbers;
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<uint64_t> numbers = parsed();
    constexpr size_t block = NUMBERS / BLOCKS;
    std::atomic<size_t> next{0};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([&] {
            for (size_t mine; (mine = next++) < BLOCKS;) {
                const auto first = numbers.begin() + mine * block;
                std::sort(first, first + block);
            }
        });
    }
    for (auto &one : all) one.join();
    for (size_t size = block; size < NUMBERS; size *= 2) {
        for (size_t at = 0; at < NUMBERS; at += 2 * size) {
            const auto first = numbers.begin() + at;
            std::inplace_merge(first, first + size, first + 2 * size);
        }
    }
    return std::is_sorted(numbers.begin(), numbers.end()) ? 0 : 1;
}
