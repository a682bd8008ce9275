// Reads what Python passes to a walk: arms, rewards and contexts. Twin of the checks in banditree/policy/inputs.py,
// which explain what these refuse.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <optional>

#include "bindings/checked.hpp"
#include "bindings/walk.hpp"

namespace banditree {

inline PyTypeObject *plain_array = nullptr,
                    *plain_int64 = nullptr;  // numpy.ndarray and numpy.int64, once the module is loaded

// Converts a Python float, int or bool to a double. False for anything else, which Python then converts or refuses: no
// user code runs in the middle of a step.
inline bool to_double(nanobind::handle value, double& out) {
    PyObject* object = value.ptr();
    if (PyFloat_Check(object)) {
        out = PyFloat_AsDouble(object);
        return true;
    }
    if (!PyLong_Check(object)) return false;
    out = PyLong_AsDouble(object);
    if (out == -1.0 && PyErr_Occurred()) {  // beyond the range of doubles
        PyErr_Clear();
        return false;
    }
    return true;
}

// Finds the position of an arm. False for what is not an id, such as True and 1.0, which equal 1, and for an unknown
// one.
inline bool to_position(const BoundWalk& self, nanobind::handle arm, std::int64_t& out) {
    PyObject* object = arm.ptr();
    if (!PyLong_CheckExact(object) && !PyUnicode_CheckExact(object) && Py_TYPE(object) != plain_int64) return false;
    PyObject* found = PyDict_GetItemWithError(self.position_of.ptr(), object);
    if (!found) PyErr_Clear();
    if (!found || !PyLong_CheckExact(found)) return false;
    int overflow = 0;
    out = PyLong_AsLongLongAndOverflow(found, &overflow);
    return !overflow && out >= 0 && out < self.walk->tree.n_arms;
}

// Copies a context that is ready to use, or n of them in rows: None if none is needed, else doubles of the right length
// and size in a plain NumPy array (a masked array is another type). It is copied before it is checked, because another
// thread may change the array.
inline bool to_context(nanobind::handle value, BoundWalk& self, const double*& out, std::optional<std::size_t> n = {}) {
    const std::size_t dim = self.walk->dim(), size = n.value_or(1) * dim;
    out = nullptr;
    if (dim == 0 || value.is_none()) return dim == 0 && value.is_none();
    Doubles given;
    if (Py_TYPE(value.ptr()) != plain_array || !nanobind::try_cast(value, given, false)) return false;
    if (given.ndim() != (n ? 2 : 1) || given.shape(given.ndim() - 1) != dim || given.size() != size) return false;
    if (!aligned(given.data())) return false;
    self.context.assign(given.data(), given.data() + size);
    out = self.context.data();
    for (std::size_t i = 0; i < size; ++i)
        if (!(std::fabs(out[i]) <= largest_context)) return false;  // NaN too
    return true;
}

// The numbers in an array of n of them, null for None. The caller keeps the array alive.
inline const double* numbers_of(nanobind::object array, std::size_t n) {
    if (array.is_none()) return nullptr;
    Doubles given;
    if (!nanobind::try_cast(array, given, false)) throw nanobind::type_error("numbers must be doubles");
    require(given.ndim() == 1 && given.shape(0) == n && aligned(given.data()), "there must be one number per reward");
    return given.data();
}

// Reads a number once, so that what is checked is what is used even if another thread changes the array.
template <class T>
T read(const T* number) {
    return *static_cast<const volatile T*>(number);
}

// Contexts as rows of doubles: null if none are needed, else one for each of n decisions or rewards.
inline const double* rows_of(nanobind::object contexts, std::size_t n, std::size_t dim, Doubles& keep) {
    if (contexts.is_none() != (dim == 0) || (dim > 0 && !nanobind::try_cast(contexts, keep, false)))
        throw nanobind::value_error("contexts do not fit this policy");
    if (dim == 0) return nullptr;
    require(keep.ndim() == 2 && keep.shape(0) == n && keep.shape(1) == dim && aligned(keep.data()),
            "contexts must have one row each");
    for (std::size_t i = 0; i < n * dim; ++i)
        require(std::fabs(keep.data()[i]) <= largest_context, "contexts must be finite, and not too large");
    return keep.data();
}

}  // namespace banditree
