// A pool that is fed in bursts: eight times the main thread puts 96 jobs of equal length (0.65 ms)
// into a queue with a mutex and a condition, and waits until all are done. The mutex is held for
// less than a microsecond a job, filling takes a few microseconds, and at the end of a burst a
// worker waits for half a job of 48. A housekeeper wakes every 25 ms. Nothing limits.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
public:
    explicit Pool(int threads) {
        for (int t = 0; t < threads; t++) workers_.emplace_back([this] { work(); });
        housekeeper_ = std::thread([this] { keep_house(); });
    }

    ~Pool() {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            ended_ = true;
        }
        filled_.notify_all();
        ending_.notify_all();
        for (auto &worker : workers_) worker.join();
        housekeeper_.join();
    }

    void submit_all(std::vector<std::function<void()>> jobs) {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            open_ += jobs.size();
            for (auto &job : jobs) jobs_.push_back(std::move(job));
        }
        filled_.notify_all();
    }

    void wait() {
        std::unique_lock<std::mutex> guard(mutex_);
        done_.wait(guard, [this] { return open_ == 0; });
    }

private:
    void work() {
        std::unique_lock<std::mutex> guard(mutex_);
        for (;;) {
            filled_.wait(guard, [this] { return ended_ || !jobs_.empty(); });
            if (jobs_.empty()) return;
            auto job = std::move(jobs_.front());
            jobs_.pop_front();
            guard.unlock();
            job();
            guard.lock();
            if (--open_ == 0) done_.notify_all();
        }
    }

    void keep_house() {
        std::unique_lock<std::mutex> guard(mutex_);
        while (!ending_.wait_for(guard, std::chrono::milliseconds(25), [this] { return ended_; })) longest_ = jobs_.size();
    }

    std::mutex mutex_;
    std::condition_variable filled_, done_, ending_;
    std::deque<std::function<void()>> jobs_;
    std::size_t open_ = 0, longest_ = 0;
    bool ended_ = false;
    std::vector<std::thread> workers_;
    std::thread housekeeper_;
};

struct alignas(128) Result {
    uint64_t value = 0;
};

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    constexpr int bursts = 8, jobs_each = 96;
    static Result results[jobs_each];
    {
        Pool pool(threads);
        for (int burst = 0; burst < bursts; burst++) {
            std::vector<std::function<void()>> jobs;
            for (int j = 0; j < jobs_each; j++) {
                jobs.push_back([j, burst] {
                    uint64_t checksum = results[j].value + burst + 1;
                    for (int i = 0; i < 500000; i++) checksum = checksum * 6364136223846793005u + (i & 255);
                    results[j].value = checksum;
                });
            }
            pool.submit_all(std::move(jobs));
            pool.wait();
        }
    }
    uint64_t sum = 0;
    for (auto &result : results) sum ^= result.value;
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
}
