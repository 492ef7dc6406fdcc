// Prices of Asian options by Monte Carlo, with a background thread that reports progress: it wakes
// every 5 ms, reads a counter of each worker and sleeps again, some 100 times 5 us in half a second
// (0.1 %). Each worker writes its own padded counter once in 0.5 ms, and its random generator is its
// own. The batches are equal, 1000 of them dealt out in turn: nothing limits.
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

constexpr int batches = 1000, paths = 500, steps = 32;

struct alignas(128) Progress {
    std::atomic<int> done{0};
    double sum = 0;
};

double price(int batch) {
    std::mt19937_64 random(static_cast<std::uint64_t>(batch) + 1);
    std::normal_distribution<double> normal;
    double total = 0;
    for (int path = 0; path < paths; path++) {
        double value = 100, mean = 0;
        for (int step = 0; step < steps; step++) {
            value *= std::exp(-0.0002 + 0.02 * normal(random));
            mean += value / steps;
        }
        total += mean > 100 ? mean - 100 : 0;
    }
    return total / paths;
}

class Ticker {
public:
    explicit Ticker(const std::vector<Progress> &progress) : progress(progress), thread([this] { run(); }) {}

    ~Ticker() {
        {
            std::lock_guard<std::mutex> guard(mutex);
            stopped = true;
        }
        wake.notify_one();
        thread.join();
    }

private:
    void run() {
        std::unique_lock<std::mutex> guard(mutex);
        while (!wake.wait_for(guard, std::chrono::milliseconds(5), [this] { return stopped; })) {
            int done = 0;
            for (const Progress &it : progress) {
                done += it.done.load(std::memory_order_relaxed);
            }
            part = static_cast<double>(done) / batches;
        }
    }

    const std::vector<Progress> &progress;
    std::mutex mutex;
    std::condition_variable wake;
    bool stopped = false;
    double part = 0;
    std::thread thread;
};

int main(int argc, char **argv) {
    const int workers = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<Progress> progress(static_cast<std::size_t>(workers));
    {
        Ticker ticker(progress);
        std::vector<std::thread> threads;
        for (int worker = 0; worker < workers; worker++) {
            threads.emplace_back([worker, workers, &progress] {
                Progress &mine = progress[static_cast<std::size_t>(worker)];
                double sum = 0;
                for (int batch = worker; batch < batches; batch += workers) {
                    sum += price(batch);
                    mine.done.fetch_add(1, std::memory_order_relaxed);
                }
                mine.sum = sum;
            });
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
    }
    double sum = 0;
    for (const Progress &it : progress) {
        sum += it.sum;
    }
    std::printf("%.4f\n", sum / batches);
}
