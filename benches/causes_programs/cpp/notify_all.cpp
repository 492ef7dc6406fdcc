// A pool whose deque has one condition for "there is a task" and "a task is done": both notify all. Of
// the threads that are woken one finds a task.
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

static uint64_t compute(uint64_t iterations, uint64_t seed) {
    for (uint64_t i = 0; i < iterations; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(seed));
    }
    return seed;
}

static std::mutex mutex;
static std::condition_variable changed;
static std::deque<long> tasks;
static int running;
static bool over;

static void serve() {
    for (;;) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [] { return over || !tasks.empty(); });
        if (tasks.empty()) return;
        const long task = tasks.front();
        tasks.pop_front();
        running++;
        lock.unlock();
        compute(20000, task);
        lock.lock();
        running--;
        changed.notify_all();
    }
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) all.emplace_back(serve);
    for (long task = 0; task < 6000; task++) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [] { return tasks.size() + running < 2; });
        tasks.push_back(task + 1);
        changed.notify_all();
    }
    {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [] { return tasks.empty() && running == 0; });
        over = true;
        changed.notify_all();
    }
    for (auto &one : all) one.join();
}
