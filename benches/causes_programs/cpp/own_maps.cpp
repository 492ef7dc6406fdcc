// Threads that fill and empty a std::map of strings each: they allocate all the time, each from an
// arena of its own, as the C library gives one to each thread.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([=] {
            std::map<uint64_t, std::string> sessions;
            uint64_t seed = t + 1;
            for (int i = 0; i < 2400000 / threads; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                sessions[seed >> 54].assign(20 + (seed >> 40) % 60, 'x');
                sessions.erase((seed >> 44) & 1023);
            }
        });
    }
    for (auto &one : all) one.join();
}
