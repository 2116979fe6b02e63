#include "peers/vector_ring.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace {
struct Entry {
    uint64_t hash;
    size_t item;
};
} // namespace

struct vector_ring {
    std::vector<Entry> entries;
};

vector_ring *vector_ring_new(const vector_ring_item *items, size_t n, uint64_t min, uint64_t max)
{
    auto *ring = new vector_ring;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += static_cast<double>(items[i].weight);
    double least = 1;
    std::vector<double> share(n);
    for (size_t i = 0; i < n; i++) {
        share[i] = static_cast<double>(items[i].weight) / sum;
        least = std::min(least, share[i]);
    }
    double scale = std::min(std::ceil(least * static_cast<double>(min)) / least, static_cast<double>(max));
    ring->entries.reserve(static_cast<size_t>(std::ceil(scale)));
    double current = 0, target = 0;
    std::string key;
    for (size_t i = 0; i < n; i++) {
        key.assign(items[i].key, items[i].key_len);
        key.push_back('_');
        size_t prefix = key.size();
        target += scale * share[i];
        for (size_t k = 0; current < target; k++, current += 1) {
            key.append(std::to_string(k));
            ring->entries.push_back({XXH64(key.data(), key.size(), 0), i});
            key.resize(prefix);
        }
    }
    std::sort(ring->entries.begin(), ring->entries.end(),
              [](const Entry &a, const Entry &b) { return a.hash < b.hash; });
    return ring;
}

void vector_ring_free(vector_ring *r)
{
    delete r;
}

size_t vector_ring_size(const vector_ring *r)
{
    return r->entries.size();
}

size_t vector_ring_pick(const vector_ring *r, uint64_t h)
{
    const std::vector<Entry> &ring = r->entries;
    size_t low = 0, high = ring.size(), found;
    for (;;) {
        found = (low + high) / 2;
        if (found == ring.size()) {
            found = 0;
            break;
        }
        uint64_t here = ring[found].hash, before = found == 0 ? 0 : ring[found - 1].hash;
        if (h <= here && h > before)
            break;
        if (here < h)
            low = found + 1;
        else if (found == 0)
            break;
        else
            high = found - 1;
        if (low > high) {
            found = 0;
            break;
        }
    }
    return ring[found].item;
}

uint64_t vector_ring_hash_at(const vector_ring *r, size_t entry)
{
    return r->entries[entry].hash;
}

size_t vector_ring_item_at(const vector_ring *r, size_t entry)
{
    return r->entries[entry].item;
}
