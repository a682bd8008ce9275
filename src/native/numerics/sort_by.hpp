// Sorts an array of small whole numbers and reorders another array with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace banditree {

// Sorts keys, which are below k, and the values with them; equal keys stay in order. By counting, unless k is so large
// that the counts alone would take longer.
inline void sort_by(std::int32_t* key, std::int32_t k, std::int32_t* value, std::int32_t* scratch, std::size_t n) {
    if (static_cast<std::size_t>(k) > 16 * n) {
        std::vector<std::pair<std::int32_t, std::int32_t>> both(n);
        for (std::size_t i = 0; i < n; ++i) both[i] = {key[i], value[i]};
        std::stable_sort(both.begin(), both.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
        for (std::size_t i = 0; i < n; ++i) std::tie(key[i], value[i]) = both[i];
        return;
    }
    std::vector<std::size_t> place(static_cast<std::size_t>(k) + 1);
    for (std::size_t i = 0; i < n; ++i) ++place[key[i] + 1];
    for (std::size_t c = 1; c < place.size(); ++c) place[c] += place[c - 1];
    for (std::size_t i = 0; i < n; ++i) scratch[place[key[i]]++] = value[i];
    std::copy(scratch, scratch + n, value);
    std::size_t at = 0;
    for (std::int32_t c = 0; c < k; ++c)
        for (; at < place[c]; ++at) key[at] = c;
}

}  // namespace banditree
