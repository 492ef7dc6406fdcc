// A pool with one locked queue of std::function, from which each thread takes a task and to which
// it adds the next. A task is so short that this costs more than doing it.
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex mutex;
static std::deque<std::function<uint64_t()>> tasks;

static void worked(int times) {
    uint64_t sum = 0;
    for (int i = 0; i < times; i++) {
        std::unique_lock<std::mutex> lock(mutex);
        const auto task = std::move(tasks.front());
        tasks.pop_front();
        lock.unlock();
        sum += task();
        lock.lock();
        tasks.emplace_back([sum] { return sum * sum + 1; });
    }
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    for (uint64_t i = 0; i < 1000; i++) tasks.emplace_back([i] { return i; });
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) all.emplace_back(worked, 10000000 / threads);
    for (auto &one : all) one.join();
}
