#include "ops/trees.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trocar/random.h"

namespace trocar {
namespace {

// Two columns in [0, 1) and one that is always the same.
TreeTable random_table(std::size_t rows) {
    TreeTable table{3, {}};
    for (std::size_t row = 0; row < rows; ++row) {
        auto words = philox(3, 1, row);
        table.values.push_back(unit_double(words[0], words[1]));
        table.values.push_back(unit_double(words[2], words[3]));
        table.values.push_back(5);
    }
    return table;
}

TEST(BoostedTrees, LearnAStepAndACurve) {
    TreeTable table = random_table(600);
    auto law = [](const double* row) { return (row[0] > 0.5 ? 1.0 : 0.0) + row[1] * row[1]; };
    std::vector<double> targets;
    for (std::size_t row = 0; row < table.rows(); ++row)
        targets.push_back(law(table.row(row)));
    BoostedTrees trees(table, targets);
    for (double a : {0.1, 0.3, 0.7, 0.9})
        for (double b : {0.1, 0.5, 0.9}) {
            double row[] = {a, b, 5};
            EXPECT_NEAR(trees.predict(row), law(row), 0.1) << a << " " << b;
        }
}

TEST(BoostedTrees, StayWhereTheDataEnds) {
    TreeTable table = random_table(300);
    std::vector<double> targets;
    for (std::size_t row = 0; row < table.rows(); ++row)
        targets.push_back(table.row(row)[0]);
    BoostedTrees trees(table, targets);
    double end[] = {1, 0.5, 5};
    double beyond[] = {1000, 0.5, 5};
    EXPECT_EQ(trees.predict(end), trees.predict(beyond));
}

TEST(BoostedTrees, TellWhatIsMissingFromWhatIsSmall) {
    TreeTable table{1, {}};
    std::vector<double> targets;
    for (int i = 0; i < 40; ++i) {
        table.values.push_back(i % 2 == 0 ? TreeTable::missing : -3 + 0.01 * i);
        targets.push_back(i % 2 == 0 ? 1 : 0);
    }
    TreeOptions options;
    options.column_share = 1;
    BoostedTrees trees(table, targets, options);
    double missing = TreeTable::missing;
    double small = -1000;
    EXPECT_GT(trees.predict(&missing), 0.9);
    EXPECT_LT(trees.predict(&small), 0.1);
}

TEST(BoostedTrees, OfNoRowsOrOneRowAnswerWithTheMean) {
    double row[] = {0.5, 0.5, 5};
    EXPECT_EQ(BoostedTrees().predict(row), 0);
    EXPECT_EQ(BoostedTrees(TreeTable{3, {}}, {}).predict(row), 0);
    EXPECT_DOUBLE_EQ(BoostedTrees(random_table(1), {4.0}).predict(row), 4);
}

TEST(BoostedTrees, AreTheSameEachTime) {
    TreeTable table = random_table(100);
    std::vector<double> targets;
    for (std::size_t row = 0; row < table.rows(); ++row)
        targets.push_back(std::sin(9 * table.row(row)[0]));
    BoostedTrees one(table, targets);
    BoostedTrees two(table, targets);
    for (std::size_t row = 0; row < table.rows(); ++row)
        EXPECT_EQ(one.predict(table.row(row)), two.predict(table.row(row)));
}

}  // namespace
}  // namespace trocar
