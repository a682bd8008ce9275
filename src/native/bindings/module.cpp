// banditree._native: the random stream, the walks, the simulator and winning probabilities.
#include <nanobind/nanobind.h>

#include "bindings/walk.hpp"
#include "numerics/vectors.hpp"

NB_MODULE(_native, m) {
    m.doc() = "The native engine of banditree.";
    nanobind::set_leak_warnings(false);  // an interpreter that is stopped in mid-run leaves objects behind: no fault here
    banditree::bind_stream(m);
    banditree::bind_walk(m);
    banditree::bind_simulate(m);
    banditree::bind_winning(m);
    m.def(
        "use_wider_vectors", [](bool on) { return banditree::wider_vectors = on && BANDITREE_HAS_WIDER; }, nanobind::arg("on"),
        "Whether loops use vectors of 256 bits from now on: if told to, and if the processor has them. The bits are the same.");
}
