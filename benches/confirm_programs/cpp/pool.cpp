// A pool with a queue of functions, a std::mutex and a std::condition_variable. Whoever takes a
// function puts it into the books under the lock. HELD: steps of that; APART: steps of a task.
#include "plant.hpp"
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

class Pool {
    std::mutex mutex;
    std::condition_variable is_filled;
    std::deque<std::function<void(Seed &)>> queue;
    Seed books = 1;
    long held;

  public:
    explicit Pool(long held) : held(held) {}

    void put(std::function<void(Seed &)> task) {
        {
            std::lock_guard<std::mutex> lock(mutex);
            queue.push_back(std::move(task));
        }
        is_filled.notify_one();
    }

    std::function<void(Seed &)> take() {
        std::unique_lock<std::mutex> lock(mutex);
        is_filled.wait(lock, [&] { return !queue.empty(); });
        auto task = std::move(queue.front());
        queue.pop_front();
        books = work(books, held);
        return task;
    }
};

int main(int count, char **arguments) {
    Asked it = asked(count, arguments);
    Pool pool(it.held);
    for (long task = 0; task < it.operations; task++)
        pool.put([&](Seed &seed) { seed = work(seed, it.apart); });
    in_threads(it, [&](Seed &seed) { pool.take()(seed); });
}
