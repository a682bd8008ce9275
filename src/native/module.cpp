// banditree._native: the random stream, the walks and the simulator.
#include <nanobind/nanobind.h>

#include "walk.hpp"

NB_MODULE(_native, m) {
    m.doc() = "The native engine of banditree.";
    banditree::bind_stream(m);
    banditree::bind_walk(m);
    banditree::bind_simulate(m);
}
