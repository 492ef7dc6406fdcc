// Threads that copy one std::shared_ptr for each look at what it points to: its count of owners
// moves between the CPUs.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    auto settings = std::make_shared<const uint64_t>(42);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([&settings, threads] {
            uint64_t sum = 0;
            for (long i = 0; i < 20000000 / threads; i++) {
                std::shared_ptr<const uint64_t> own = settings;
                sum += *own;
            }
            if (sum == 0) std::abort();
        });
    }
    for (auto &thread : all) thread.join();
}
