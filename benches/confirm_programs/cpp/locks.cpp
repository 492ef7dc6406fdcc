// The locks of the C++ library. HELD, APART: steps.
//
// shared      std::shared_mutex, taken for writing
// recursive   std::recursive_mutex, taken twice by the same thread
// timed       std::timed_mutex, with a time limit
// scoped      std::scoped_lock of two mutexes
// plain       std::mutex
#include "plant.hpp"
#include <chrono>
#include <mutex>
#include <shared_mutex>

namespace {
std::shared_mutex shared;
std::recursive_mutex recursive;
std::timed_mutex timed;
std::mutex first, second, plain;
Seed sum;

[[gnu::noinline]] void add(Seed &seed, long held) { sum += seed = work(seed, held); }

[[gnu::noinline]] void under_shared(Seed &seed, long held) {
    std::unique_lock<std::shared_mutex> lock(shared);
    add(seed, held);
}

[[gnu::noinline]] void again(Seed &seed, long held) {
    std::lock_guard<std::recursive_mutex> lock(recursive);
    add(seed, held / 2);
}

[[gnu::noinline]] void under_recursive(Seed &seed, long held) {
    std::lock_guard<std::recursive_mutex> lock(recursive);
    add(seed, held / 2);
    again(seed, held);
}

[[gnu::noinline]] void under_timed(Seed &seed, long held) {
    std::unique_lock<std::timed_mutex> lock(timed, std::chrono::minutes(1));
    if (!lock.owns_lock())
        std::abort();
    add(seed, held);
}

[[gnu::noinline]] void under_scoped(Seed &seed, long held) {
    std::scoped_lock lock(first, second);
    add(seed, held);
}

[[gnu::noinline]] void under_plain(Seed &seed, long held) {
    std::lock_guard lock(plain);
    add(seed, held);
}
} // namespace

int main(int count, char **arguments) {
    Asked it = asked(count, arguments);
    auto under = it.kind == "shared"      ? under_shared
                 : it.kind == "recursive" ? under_recursive
                 : it.kind == "timed"     ? under_timed
                 : it.kind == "scoped"    ? under_scoped
                                          : under_plain;
    in_threads(it, [&](Seed &seed) {
        under(seed, it.held);
        seed = work(seed, it.apart);
    });
    std::printf("%lu\n", static_cast<unsigned long>(sum));
}
