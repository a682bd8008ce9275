// banditree._native: the random stream and the walks.
#include <nanobind/nanobind.h>

#include "walk.hpp"

NB_MODULE(_native, m) {
    m.doc() = "The native engine of banditree.";
    banditree::bind_stream(m);
    banditree::bind_walk(m);
}
