// A cache of packed map tiles, whose one mutex is taken at two places: find() unpacks a tile under
// it (4096 dependent steps, 20,000 cycles), store() packs it again and drops the oldest (3072
// steps, 15,000 cycles). Drawing, outside, takes 2048 steps, 10,000 cycles. So 35 of 45 parts
// exclude each other: two workers gain at most 1.28, and all of the loss is the lock's.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

using Pixels = std::vector<uint8_t>;

constexpr int tile_size = 4096, packed_size = 3072, most_tiles = 64, all_tiles = 96;

class TileCache {
public:
    void find(int tile, Pixels &into) {
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = tiles_.find(tile);
        const Pixels &from = found == tiles_.end() ? blank_ : found->second;
        uint64_t state = tile + 1;
        for (int i = 0; i < tile_size; i++) {
            state = state * 6364136223846793005u + from[i % packed_size];
            into[i] = state >> 56;
        }
    }

    void store(int tile, const Pixels &pixels) {
        std::lock_guard<std::mutex> guard(mutex_);
        auto added = tiles_.emplace(tile, Pixels(packed_size));
        if (added.second) order_.push_back(tile);
        Pixels &packed = added.first->second;
        uint64_t state = tile + 7;
        for (int i = 0; i < packed_size; i++) {
            state = state * 2862933555777941757u + pixels[i];
            packed[i] = state >> 56;
        }
        if (tiles_.size() > most_tiles) {
            tiles_.erase(order_.front());
            order_.pop_front();
        }
    }

private:
    std::mutex mutex_;
    std::unordered_map<int, Pixels> tiles_;
    std::list<int> order_;
    Pixels blank_ = Pixels(packed_size, 128);
};

static void draw(Pixels &pixels, uint64_t &canvas) {
    uint64_t tone = canvas;
    for (int i = 0; i < tile_size / 2; i++) {
        tone = tone * 3202034522624059733u + pixels[i];
        pixels[i] ^= tone >> 60;
    }
    canvas = tone;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    TileCache cache;
    std::vector<uint64_t> canvases(threads);
    std::vector<std::thread> viewers;
    for (int t = 0; t < threads; t++) {
        viewers.emplace_back([&cache, &canvases, t, threads] {
            Pixels pixels(tile_size);
            uint64_t canvas = t + 1;
            for (int i = 0; i < 34000 / threads; i++) {
                int tile = (canvas >> 33) % all_tiles;
                cache.find(tile, pixels);
                draw(pixels, canvas);
                cache.store(tile, pixels);
            }
            canvases[t] = canvas;
        });
    }
    for (auto &viewer : viewers) viewer.join();
    std::printf("%llu\n", static_cast<unsigned long long>(canvases[0]));
}
