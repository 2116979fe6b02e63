#include "peers/modulo_maglev.h"

#include <algorithm>
#include <string_view>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace {
struct Entry {
    uint32_t host;
    std::string_view key;
    uint64_t offset, skip;
    double weight, target;
    uint64_t next;
};
} // namespace

void modulo_maglev(const char *const *keys, const size_t *key_len, const double *weights, size_t n, uint32_t *table,
                   uint64_t size)
{
    std::vector<Entry> entries;
    entries.reserve(n);
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        entries.push_back({static_cast<uint32_t>(i), {keys[i], key_len[i]}, 0, 0, weights[i], 0, 0});
        largest = std::max(largest, weights[i]);
    }
    std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.key < b.key; });
    for (Entry &e : entries) {
        e.offset = XXH64(e.key.data(), e.key.size(), 0) % size;
        e.skip = XXH64(e.key.data(), e.key.size(), 1) % (size - 1) + 1;
    }
    std::vector<const Entry *> places(size, nullptr);
    uint64_t filled = 0;
    for (uint32_t round = 1; filled < size; round++)
        for (size_t i = 0; i < entries.size() && filled < size; i++) {
            Entry &e = entries[i];
            if (round * e.weight < e.target)
                continue;
            e.target += largest;
            uint64_t at = (e.offset + e.skip * e.next) % size;
            while (places[at] != nullptr) {
                e.next++;
                at = (e.offset + e.skip * e.next) % size;
            }
            places[at] = &e;
            e.next++;
            filled++;
        }
    for (uint64_t s = 0; s < size; s++)
        table[s] = places[s]->host;
}
