// Binds the random stream as a Python class: single draws, and arrays of draws that equal single draws in C order.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include "bindings/checked.hpp"
#include "numerics/math.hpp"
#include "stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace banditree {
namespace {

using Words = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Shapes = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

double checked(const char* name, double value) {
    if (value > 0.0 && value <= std::numeric_limits<double>::max()) return value;
    const std::string shown = nb::str(nb::float_(value)).c_str();
    throw nb::value_error((std::string(name) + "=" + shown + " must be finite and above 0").c_str());
}

// Checks every element before the first draw, so that a refused call leaves the stream unchanged.
void check(const char* name, const Shapes& values) {
    require(aligned(values.data()), "parameters must be in aligned arrays");
    for (std::size_t i = 0; i < values.shape(0); ++i) checked(name, values(i));
}

void check_pair(const Shapes& a, const Shapes& b) {
    if (a.shape(0) != b.shape(0)) throw nb::value_error("a and b must have the same length");
    check("a", a);
    check("b", b);
}

std::uint64_t checked_count(std::uint64_t k) {
    if (k == 0) throw nb::value_error("k=0 must be at least 1: integers(k) draws from 0 to k - 1");
    return k;
}

// Returns a NumPy array of the given sizes, in C order, that owns what `fill` has written.
template <class T, std::size_t N, class Fill>
nb::ndarray<nb::numpy, T, nb::ndim<N>> array(const std::array<std::size_t, N>& sizes, Fill&& fill) {
    std::size_t total = 1;
    for (const std::size_t size : sizes) {
        if (size > 0 && total > std::numeric_limits<std::size_t>::max() / sizeof(T) / size) throw std::bad_alloc();
        total *= size;
    }
    std::unique_ptr<T[]> data(new T[total]);
    fill(data.get());
    const nb::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return {data.release(), N, sizes.data(), owner};
}

template <class T, class Draw>
auto row(std::size_t n, Draw&& draw) {
    return array<T, 1>({n}, [&](T* out) { std::generate_n(out, n, draw); });
}

// Row i holds m draws, written by draw(i, out).
template <class Draw>
auto rows(std::size_t k, std::size_t m, Draw&& draw) {
    return array<double, 2>({k, m}, [&](double* out) {
        for (std::size_t i = 0; i < k; ++i) draw(i, out + i * m);
    });
}

void construct(Stream* self, const Words& words) {
    if (words.shape(0) != 4) throw nb::value_error("a stream needs 4 words of state");
    const std::array<std::uint64_t, 4> state = {words(0), words(1), words(2), words(3)};
    if (state == std::array<std::uint64_t, 4>{}) throw nb::value_error("the state of a stream must not be all zero");
    new (self) Stream{state};
}

}  // namespace

void bind_stream(nb::module_& m) {
    m.def("ln", &ln, "x"_a, "The natural logarithm in plain arithmetic.");
    m.def("exp", &exp, "x"_a, "The exponential in plain arithmetic.");

    nb::class_<Stream>(m, "Stream", "xoshiro256++ and exact samplers; the same numbers on every machine.")
        .def("__init__", &construct, "words"_a)
        .def("state",
             [](const Stream& s) {
                 return array<std::uint64_t, 1>({4}, [&](std::uint64_t* out) { std::copy_n(s.state.data(), 4, out); });
             })
        .def(
            "seed", [](Stream& self, const Words& words) { construct(&self, words); }, "words"_a)
        .def("bits", &Stream::bits)
        .def("random", &Stream::random)
        .def(
            "integers", [](Stream& s, std::uint64_t k) { return s.integers(checked_count(k)); }, "k"_a)
        .def("standard_normal", &Stream::standard_normal)
        .def("standard_exponential", &Stream::standard_exponential)
        .def(
            "standard_gamma", [](Stream& s, double shape) { return s.standard_gamma(checked("shape", shape)); },
            "shape"_a)
        .def(
            "log_gamma_draw", [](Stream& s, double shape) { return s.log_gamma_draw(checked("shape", shape)); },
            "shape"_a)
        .def(
            "beta", [](Stream& s, double a, double b) { return s.beta(checked("a", a), checked("b", b)); }, "a"_a,
            "b"_a)
        .def(
            "beta_log_odds",
            [](Stream& s, double a, double b) { return s.beta_log_odds(checked("a", a), checked("b", b)); }, "a"_a,
            "b"_a)
        .def(
            "random_fill", [](Stream& s, std::size_t n) { return row<double>(n, [&] { return s.random(); }); }, "n"_a)
        .def(
            "integers_fill",
            [](Stream& s, std::uint64_t k, std::size_t n) {
                checked_count(k);
                return row<std::int64_t>(n, [&] { return static_cast<std::int64_t>(s.integers(k)); });
            },
            "k"_a, "n"_a)
        .def(
            "standard_normal_fill",
            [](Stream& s, std::size_t n) { return row<double>(n, [&] { return s.standard_normal(); }); }, "n"_a)
        .def(
            "standard_exponential_fill",
            [](Stream& s, std::size_t n) { return row<double>(n, [&] { return s.standard_exponential(); }); }, "n"_a)
        .def(
            "standard_gamma_fill",
            [](Stream& s, const Shapes& shape, std::size_t m) {
                check("shape", shape);
                return rows(shape.shape(0), m, [&](std::size_t i, double* out) {
                    std::generate_n(out, m, [&] { return s.standard_gamma(shape(i)); });
                });
            },
            "shape"_a, "m"_a)
        .def(
            "beta_fill",
            [](Stream& s, const Shapes& a, const Shapes& b, std::size_t m) {
                check_pair(a, b);
                return rows(a.shape(0), m, [&](std::size_t i, double* out) { s.beta_fill(a(i), b(i), out, m); });
            },
            "a"_a, "b"_a, "m"_a)
        .def(
            "beta_log_odds_fill",
            [](Stream& s, const Shapes& a, const Shapes& b, std::size_t m) {
                check_pair(a, b);
                return rows(a.shape(0), m, [&](std::size_t i, double* out) {
                    std::generate_n(out, m, [&] { return s.beta_log_odds(a(i), b(i)); });
                });
            },
            "a"_a, "b"_a, "m"_a);
}

}  // namespace banditree
