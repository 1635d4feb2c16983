#include "ops/predict_features.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace trocar {
namespace {

constexpr std::size_t fixed_columns = 11;
constexpr std::size_t most_numbers = 32;

// Vector units work on 8 or 16 lanes: the rest of the last vector is computed too.
double log_waste(double size, double width) {
    return size > 0 ? std::log(std::ceil(size / width) * width / size) : 0;
}

double log_size(double value) {
    return std::copysign(std::log1p(std::abs(value)), value);
}

struct Means {
    struct Mean {
        double sum = 0;
        double count = 0;
    };
    std::map<std::string, Mean> of;

    void add(const std::string& text, double value) {
        of[text].sum += value;
        of[text].count += 1;
    }
    // Texts with few samples would tell the trees the very errors they are to learn.
    std::map<std::string, double> codes(double least) const {
        std::map<std::string, double> result;
        for (const auto& [text, mean] : of) {
            if (mean.count >= least) {
                result[text] = mean.sum / (mean.count + 2);
            }
        }
        return result;
    }
};

double code(const std::map<std::string, double>& codes, const std::string& text) {
    auto found = codes.find(text);
    return found == codes.end() ? 0 : found->second;
}

std::string type_and_attributes(const OpFeatures& features) {
    return features.type + '\n' + features.attributes;
}

}  // namespace

OpColumns::OpColumns(const std::vector<OpSample>& samples, const std::vector<std::size_t>& rows,
                     const RooflinePrior& prior) {
    Means types;
    Means dtypes;
    Means attributes;
    std::map<std::string, std::size_t> names;
    for (std::size_t row : rows) {
        const OpFeatures& features = samples[row].features;
        double ns = std::log(samples[row].ns);
        types.add(features.type, ns - prior.log_ns_unseen(features));
        dtypes.add(features.dtype, ns - prior.log_ns_unseen(features));
        attributes.add(type_and_attributes(features), ns - prior.log_ns(features));
        for (const auto& [name, value] : features.numbers) {
            ++names[name];
        }
    }
    types_ = types.codes(1);
    dtypes_ = dtypes.codes(1);
    attributes_ = attributes.codes(6);
    std::vector<std::pair<std::size_t, std::string>> common;
    for (const auto& [name, count] : names) {
        common.emplace_back(rows.size() - count, name);
    }
    std::sort(common.begin(), common.end());
    common.resize(std::min(common.size(), most_numbers));
    for (const auto& [rarity, name] : common) {
        std::size_t place = fixed_columns + 3 * numbers_.size();
        numbers_[name] = place;
    }
}

std::size_t OpColumns::count() const {
    return fixed_columns + 3 * numbers_.size();
}

void OpColumns::append_row(const OpFeatures& features, const RooflinePrior& prior,
                           std::vector<double>& values) const {
    std::size_t start = values.size();
    double flops = op_flops(features);
    double bytes = op_bytes(features);
    for (double value : {features.macs, features.other_flops, features.input_bytes,
                         features.weight_bytes, features.output_bytes, bytes}) {
        values.push_back(std::log1p(value));
    }
    values.push_back(std::log((flops + 1) / (bytes + 1)));
    values.push_back(prior.log_work(features));
    values.push_back(code(types_, features.type));
    values.push_back(code(dtypes_, features.dtype));
    values.push_back(code(attributes_, type_and_attributes(features)));
    values.resize(start + count(), TreeTable::missing);
    for (const auto& [name, value] : features.numbers) {
        auto found = numbers_.find(name);
        if (found == numbers_.end()) {
            continue;
        }
        double* at = values.data() + start + found->second;
        at[0] = log_size(value);
        at[1] = log_waste(value, 8);
        at[2] = log_waste(value, 16);
    }
}

OpResidualModel::OpResidualModel(const std::vector<OpSample>& samples,
                                 const std::vector<std::size_t>& rows, const OpPeaks& peaks)
    : prior(samples, rows, peaks), columns(samples, rows, prior) {
    TreeTable table{columns.count(), {}};
    table.values.reserve(rows.size() * table.columns);
    std::vector<double> targets;
    for (std::size_t row : rows) {
        const OpFeatures& features = samples[row].features;
        columns.append_row(features, prior, table.values);
        targets.push_back(std::log(samples[row].ns) - prior.log_ns(features));
    }
    trees = BoostedTrees(table, targets);
}

double OpResidualModel::log_ns(const OpFeatures& features) const {
    if (!prior.knows(features)) {
        return prior.log_ns_unseen(features);
    }
    std::vector<double> row;
    row.reserve(columns.count());
    columns.append_row(features, prior, row);
    return prior.log_ns(features) + trees.predict(row.data());
}

}  // namespace trocar
