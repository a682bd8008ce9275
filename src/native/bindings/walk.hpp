// A walk as Python holds it, with the arrays and the stream that it points into kept alive.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "policy/descent.hpp"

namespace banditree {

struct BoundWalk {
    std::unique_ptr<Walk> walk;
    nanobind::object keep;
    nanobind::tuple arms;              // (arms,) their ids
    nanobind::dict position_of;        // id -> position
    std::vector<double> context = {};  // scratch: a copy of the current context, or contexts
    bool is_held = false;  // whether somebody has the policy to themselves, so that single steps are refused
};

void bind_stream(nanobind::module_& m);
void bind_walk(nanobind::module_& m);
void bind_simulate(nanobind::module_& m);
void bind_winning(nanobind::module_& m);

}  // namespace banditree
