// Threads that write a line to one log for each request. Formatting is done by each for itself;
// the mutex of the log is held around write(2).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::mutex mutex;

static void logged(int log, int thread, int request) {
    char line[256];
    const int size =
        std::snprintf(line, sizeof line, "%d %08d %-100s\n", thread, request, "served");
    std::lock_guard<std::mutex> guard(mutex);
    if (write(log, line, size) != size) std::exit(1);
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    const std::string path = std::string(argc > 2 ? argv[2] : ".") + "/requests.log";
    const int log = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (log < 0) return 1;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([=] {
            for (int i = 0; i < 250000 / threads; i++) logged(log, t, i);
        });
    }
    for (auto &one : all) one.join();
    close(log);
    unlink(path.c_str());
}
