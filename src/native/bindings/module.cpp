// banditree._native: the random stream, the walks, the simulator and winning probabilities.
#include <nanobind/nanobind.h>

#include "bindings/walk.hpp"
#include "numerics/vectors.hpp"

NB_MODULE(_native, m) {
    m.doc() = "The native engine of banditree.";
    nanobind::set_leak_warnings(
        false);  // an interpreter stopped during a run leaves objects behind, which is not a leak
    banditree::bind_stream(m);
    banditree::bind_walk(m);
    banditree::bind_simulate(m);
    banditree::bind_winning(m);
    m.def(
        "use_wider_vectors", [](bool on) { return banditree::wider_vectors = on && BANDITREE_HAS_WIDER; },
        nanobind::arg("on"),
        "Turn 256-bit vectors on, if the processor has them, or off; return whether they are on. Results are the same "
        "bits.");
}
