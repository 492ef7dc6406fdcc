// Threads that make a record each and append it to one log. Who appends holds the log's mutex until
// the disk has the record, so that they wait one after the other.
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::mutex log_mutex;

static void append(int log, const std::string &record) {
    std::lock_guard<std::mutex> guard(log_mutex);
    if (write(log, record.data(), record.size()) < 0 || fdatasync(log) != 0) std::exit(1);
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    const std::string path = std::string(argc > 2 ? argv[2] : ".") + "/commit.log";
    const int log = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    if (log < 0) return 1;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([=] {
            for (int i = 0; i < 400 / threads; i++) {
                append(log, std::string(200, 'a' + i % 26) + '\n');
            }
        });
    }
    for (auto &one : all) one.join();
    close(log);
    unlink(path.c_str());
}
