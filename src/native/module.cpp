// banditree._native: the random stream, the walks and the simulator.
#include <nanobind/nanobind.h>

#include "walk.hpp"

NB_MODULE(_native, m) {
    m.doc() = "The native engine of banditree.";
    nanobind::set_leak_warnings(false);  // an interpreter that is stopped in mid-run leaves objects behind: no fault here
    banditree::bind_stream(m);
    banditree::bind_walk(m);
    banditree::bind_simulate(m);
}
