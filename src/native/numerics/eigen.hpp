// Eigenvalues and eigenvectors of a small symmetric matrix, by Jacobi's rotations: slow, short and accurate.
#pragma once

#include <cmath>
#include <cstddef>

namespace banditree {

// Leaves the eigenvalues of a, (d, d), on its diagonal, and the eigenvectors in the columns of `vectors`.
inline void eigenvectors(double* a, double* vectors, std::size_t d) {
    for (std::size_t i = 0; i < d * d; ++i) vectors[i] = i % (d + 1) == 0 ? 1.0 : 0.0;
    const auto rotate = [](double& one, double& two, double c, double s) {
        const double x = one, y = two;
        one = c * x - s * y, two = s * x + c * y;
    };
    for (int sweep = 0; sweep < 60; ++sweep) {
        bool done = true;
        for (std::size_t p = 0; p < d; ++p) {
            for (std::size_t q = p + 1; q < d; ++q) {
                const double off = a[p * d + q];
                if (!(std::fabs(off) > 1e-18 * std::sqrt(std::fabs(a[p * d + p] * a[q * d + q])) &&
                      std::fabs(off) > 1e-300))
                    continue;
                done = false;
                const double theta = (a[q * d + q] - a[p * d + p]) / (2.0 * off);
                const double t = (theta < 0.0 ? -1.0 : 1.0) / (std::fabs(theta) + std::sqrt(theta * theta + 1.0));
                const double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
                for (std::size_t k = 0; k < d; ++k) rotate(a[p * d + k], a[q * d + k], c, s);
                for (std::size_t k = 0; k < d; ++k) rotate(a[k * d + p], a[k * d + q], c, s);
                a[p * d + q] = a[q * d + p] = 0.0;
                for (std::size_t k = 0; k < d; ++k) rotate(vectors[k * d + p], vectors[k * d + q], c, s);
            }
        }
        if (done) return;
    }
}

}  // namespace banditree
