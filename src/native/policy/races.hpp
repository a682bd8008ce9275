// The probability that an arm has the highest draw, averaged over the copies of a belief. The race of each copy is kept
// until the next reward; some arms may be excluded from it without a new one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <tuple>
#include <vector>

#include "beliefs/race.hpp"
#include "policy/limits.hpp"
#include "tree/shape.hpp"

namespace banditree {

template <class Rows>
class Races {
  public:
    // The probability of an arm if it is given, else of every arm: (1,) or (arms,).
    void wins(const Tree& tree, Rows& rows, const Limits* limits, const double* context, std::int32_t arm,
              std::vector<double>& out) {
        if ((limits ? limits->n_allowed : tree.n_arms) == 1) return only_one(tree, limits, arm, out);
        rows.bring_up_to_date(tree);
        const bool few = limits && !limits->only && limits->arms.size() <= most_excluded;
        for (Table* table : {&all, &limited})
            if (table->version != rows.version) table->copies.clear();
        // Arms that are excluded are subtracted from the table of all arms, where that will do.
        for (const bool by_subtraction : {true, false}) {
            if (by_subtraction && limits && !few) continue;
            Table& table = by_subtraction ? all : limited;
            prepare(tree, rows, by_subtraction ? nullptr : limits, context, table);
            excluded.clear();
            if (limits && by_subtraction)
                for (const std::int32_t gone : limits->arms)
                    excluded.push_back(table.class_of[static_cast<std::size_t>(gone)]);
            if (drowns(table)) continue;
            if (arm >= 0 ? one_wins(table, table.class_of[static_cast<std::size_t>(arm)], out)
                         : all_win(tree, limits, table, out))
                return;
        }
    }

  private:
    static constexpr double negligible = 1e-6;  // NEGLIGIBLE in copies.py
    static constexpr double tolerance = 3e-11,
                            worst = 1e-5;         // of all probabilities, and of a race however little it weighs
    static constexpr double least_chance = 2e-8;  // NEGLIGIBLE in draws.py: of a copy and a shared number together
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr double never = 1e-300;  // a chance that is too small for a double
    static constexpr std::size_t most_excluded = 64;
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    struct Copy {
        double weight = 0.0;
        Draws draws;
        Strays strays;
        struct Given {
            double chance;  // of the shared number
            Race race;
        };
        std::vector<Given> races;
    };
    struct Table {
        std::uint64_t version = 0;  // of the evidence
        bool only = false;
        std::vector<std::int32_t> named;  // by the limits
        std::vector<double> context;
        std::vector<std::size_t> class_of;  // (arms,)
        std::vector<double> size;           // (classes,) arms that may be chosen
        Field field;
        std::vector<std::unique_ptr<Copy>> copies;
    };
    Table all, limited;
    std::vector<std::size_t> excluded;  // scratch: classes

    void only_one(const Tree& tree, const Limits* limits, std::int32_t arm, std::vector<double>& out) const {
        out.assign(arm >= 0 ? 1 : static_cast<std::size_t>(tree.n_arms), 0.0);
        out[arm >= 0 ? 0 : static_cast<std::size_t>(limits ? limits->arm(0) : 0)] = 1.0;
    }

    // The odds that arms left in a race are the stray, and that none is.
    double all_odds(const Copy& copy) const {
        double odds = 1.0 + copy.strays.all;
        for (const std::size_t of : excluded) odds -= copy.draws.odds[of];
        return odds;
    }
    // Whether the excluded arms have most of the odds of some copy: what is left after subtraction would have no
    // digits.
    bool drowns(const Table& table) const {
        return !excluded.empty() && std::any_of(table.copies.begin(), table.copies.end(), [this](const auto& copy) {
            return all_odds(*copy) < 0.01 * (1.0 + copy->strays.all);
        });
    }
    bool one_wins(Table& table, std::size_t of, std::vector<double>& out) const {
        out.assign(1, 0.0);
        for (auto& copy : table.copies) {
            const double factor = copy->weight / all_odds(*copy);
            for (auto& [chance, race] : copy->races) {
                double won;
                if (!race.win(of, excluded, won)) return false;
                out[0] += factor * chance * won;
            }
        }
        out[0] = std::max(out[0], never);
        return true;
    }
    bool all_win(const Tree& tree, const Limits* limits, Table& table, std::vector<double>& out) const {
        std::vector<double> won(table.size.size(), 0.0);
        for (auto& copy : table.copies)
            for (auto& [chance, race] : copy->races)
                if (!race.add_wins(excluded, copy->weight / all_odds(*copy) * chance, won)) return false;
        out.assign(static_cast<std::size_t>(tree.n_arms), 0.0);
        double total = 0.0;
        for (std::int32_t i = 0; i < tree.n_arms; ++i)
            if (!limits || limits->allows(i))
                total += out[static_cast<std::size_t>(i)] =
                    std::max(won[table.class_of[static_cast<std::size_t>(i)]], never);
        for (double& chance : out) chance /= total;
        return true;
    }

    void prepare(const Tree& tree, Rows& rows, const Limits* limits, const double* context, Table& table) {
        static const std::vector<std::int32_t> nobody;
        const std::vector<std::int32_t>& named = limits ? limits->arms : nobody;
        const bool only = limits && limits->only;
        if (table.version == rows.version && table.only == only && table.named == named &&
            std::equal(table.context.begin(), table.context.end(), context, context + rows.dim()))
            return;
        table.version = 0;
        table.copies.clear();
        table.only = only, table.named = named;
        table.context.assign(context, context + rows.dim());
        const std::vector<std::int32_t> members = list_classes(tree, rows, limits, table);
        table.copies.clear();
        table.field.lay_out(table.size);
        std::vector<std::size_t> order(rows.copies());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(),
                  [&](std::size_t i, std::size_t j) { return rows.weight(i) < rows.weight(j); });
        double left_out = 0.0, kept = 0.0;
        for (const std::size_t copy : order) {
            const double weight = rows.weight(copy);
            if (left_out + weight <= negligible) {
                left_out += weight;
                continue;
            }
            auto of = std::make_unique<Copy>();
            of->weight = weight;
            rows.describe(tree, context, copy, members, of->draws);
            of->draws.rescale();
            race(rows.coupling(), table.field, *of);
            table.copies.push_back(std::move(of));
            kept += weight;
        }
        for (auto& copy : table.copies) copy->weight /= kept;
        table.version = rows.version;
    }

    // Lets the classes race for every value of the shared number that counts.
    void race(const Coupling& coupling, const Field& field, Copy& copy) const {
        const Draws& draws = copy.draws;
        double kept = 0.0, low = infinity, high = -infinity;
        for (std::size_t v = 0; v < coupling.values; ++v) {
            if (coupling.chances[v] * copy.weight < least_chance) continue;
            const double shift = coupling.shared * coupling.numbers[v];
            double top = -infinity, bottom = -infinity;
            for (std::size_t c = 0; c < draws.classes(); ++c) {
                top = std::max(top, draws.mean[c] + draws.sd[c] * (shift + 8.0 * coupling.own));
                bottom = std::max(bottom, draws.mean[c] + draws.sd[c] * (shift - 6.0 * coupling.own));
            }
            low = std::min(low, bottom), high = std::max(high, top);
            kept += coupling.chances[v];
        }
        copy.strays.lay_out(draws, field.size, low, high);
        for (std::size_t v = 0; v < coupling.values; ++v) {
            const double weight = coupling.chances[v] * copy.weight, chance = coupling.chances[v] / kept;
            if (weight < least_chance) continue;
            copy.races.push_back({chance, Race(draws, field, copy.strays, coupling.shared * coupling.numbers[v],
                                               coupling.own, std::min(tolerance / weight, worst))});
        }
    }

    // Finds the classes of the arms that may be chosen; returns a leaf of each.
    std::vector<std::int32_t> list_classes(const Tree& tree, const Rows& rows, const Limits* limits,
                                           Table& table) const {
        std::size_t places = 64;
        while (places < 2 * static_cast<std::size_t>(tree.n_arms)) places *= 2;
        std::vector<std::size_t> found(places, none);  // classes by what makes arms equal: linear probing
        std::vector<Group> kinds;
        std::vector<std::int32_t> members;
        table.class_of.assign(static_cast<std::size_t>(tree.n_arms), none);
        table.size.clear();
        for (std::int32_t arm = 0; arm < tree.n_arms; ++arm) {
            if (limits && !limits->allows(arm)) continue;
            const std::int32_t leaf = tree.node_of[arm];
            const Group kind = rows.group(tree, leaf);
            const std::uint64_t mixed =
                (to_bits(kind.plays) * 0x9e3779b97f4a7c15 ^ to_bits(kind.total)) * 0xbf58476d1ce4e5b9 ^
                static_cast<std::uint64_t>(kind.node) * 0x94d049bb133111eb;
            std::size_t at = static_cast<std::size_t>((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9 >> 20) & (places - 1);
            while (found[at] != none && !(kinds[found[at]] == kind)) at = (at + 1) & (places - 1);
            if (found[at] == none) {
                found[at] = kinds.size();
                kinds.push_back(kind), members.push_back(leaf), table.size.push_back(0.0);
            }
            table.class_of[static_cast<std::size_t>(arm)] = found[at];
            table.size[found[at]] += 1.0;
        }
        return in_order(kinds, members, table);
    }

    // Puts classes with the same evidence next to each other: in all clusters their strays are the same, and computed
    // once.
    std::vector<std::int32_t> in_order(const std::vector<Group>& kinds, const std::vector<std::int32_t>& members,
                                       Table& table) const {
        std::vector<std::size_t> order(kinds.size()), place(kinds.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
            return std::tie(kinds[i].plays, kinds[i].total, i) < std::tie(kinds[j].plays, kinds[j].total, j);
        });
        std::vector<std::int32_t> ordered;
        std::vector<double> size;
        for (const std::size_t i : order)
            place[i] = ordered.size(), ordered.push_back(members[i]), size.push_back(table.size[i]);
        table.size = size;
        for (std::size_t& of : table.class_of) of = of == none ? none : place[of];
        return ordered;
    }
};

}  // namespace banditree
