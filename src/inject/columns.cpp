#include <algorithm>
#include <cstring>

#include "inject/bits.h"
#include "inject/runner_parts.h"
#include "trocar/error.h"

namespace trocar::inject {

namespace {

constexpr std::size_t column_step = 16;

// The matrix of a product, by columns of the result.
struct Matrix {
    const Constant& constant;
    bool transposed;

    std::size_t rows() const {
        return static_cast<std::size_t>(constant.shape()[transposed ? 1 : 0]);
    }
    std::size_t columns() const {
        return static_cast<std::size_t>(constant.shape()[transposed ? 0 : 1]);
    }
    std::size_t element() const { return bits(constant.dtype()) / 8; }
    std::size_t place(std::size_t row, std::size_t column, std::size_t width) const {
        return transposed ? column * rows() + row : row * width + column;
    }
    std::size_t column_of(std::uint64_t stored) const {
        return transposed ? stored / rows() : stored % columns();
    }
    std::size_t row_of(std::uint64_t stored) const {
        return transposed ? stored % rows() : stored / columns();
    }
};

bool adds(const Op& op) {
    return op.inputs.size() > 2 && op.inputs[2] != TensorId::none;
}

// The column that all changes of a lane at a step are in; nullopt where there are several.
std::optional<std::size_t> column_of(const Lane& lane, std::size_t number, const Op& op,
                                     const Matrix& matrix) {
    std::optional<std::size_t> column;
    for (const auto& change : lane.constants) {
        if (change.step != number) {
            continue;
        }
        const bool of_matrix = change.tensor == op.inputs[1];
        if (change.constant || (!of_matrix && !(adds(op) && change.tensor == op.inputs[2]))) {
            return std::nullopt;
        }
        for (const auto& poke : change.pokes) {
            const auto here = of_matrix ? matrix.column_of(poke.stored) : poke.stored;
            if (column && *column != here) {
                return std::nullopt;
            }
            column = here;
        }
    }
    return column;
}

}  // namespace

bool Runner::can_column(const Golden& golden, std::size_t number, const Lane& lane) const {
    const auto& step = circuit_.steps()[number];
    if (!step.footprint.columns || step.outputs.size() != 1) {
        return false;
    }
    const auto& op = circuit_.graph().op(step.op);
    const auto& out = golden.values[index(step.outputs[0])];
    const Matrix matrix{*circuit_.constant(op.inputs[1]), step.footprint.columns_transposed};
    return out.is_tensor() && !out.shape().empty() && out.dtype() == matrix.constant.dtype() &&
           out.shape().back() == static_cast<std::int64_t>(matrix.columns()) &&
           column_of(lane, number, op, matrix).has_value();
}

Variant columns_variant(const Circuit& circuit, const ProgramSpec& spec) {
    const auto& step = circuit.steps()[spec.step];
    const auto& op = circuit.graph().op(step.op);
    const Matrix matrix{*circuit.constant(op.inputs[1]), step.footprint.columns_transposed};
    const auto element = matrix.element();
    const auto dtype = matrix.constant.dtype();
    const auto width = static_cast<std::size_t>(spec.width);
    std::vector<std::byte> narrow(matrix.rows() * width * element);
    std::vector<std::byte> added(adds(op) ? width * element : 0);
    const auto bytes = matrix.constant.bytes();
    for (std::size_t c = 0; c < width; ++c) {
        for (std::size_t r = 0; r < matrix.rows(); ++r) {
            std::memcpy(narrow.data() + matrix.place(r, c, width) * element,
                        bytes.data() + matrix.place(r, spec.columns[c], matrix.columns()) * element,
                        element);
        }
        if (adds(op)) {
            std::memcpy(added.data() + c * element,
                        circuit.constant(op.inputs[2])->bytes().data() + spec.columns[c] * element,
                        element);
        }
    }
    for (std::size_t c = 0; c < spec.lanes.size(); ++c) {
        for (const auto& baked : spec.lanes[c]) {
            for (const auto& poke : baked.pokes) {
                if (baked.tensor == op.inputs[1]) {
                    store_bits(dtype, narrow, matrix.place(matrix.row_of(poke.stored), c, width),
                               poke.word);
                } else {
                    store_bits(dtype, added, c, poke.word);
                }
            }
        }
    }
    Variant variant;
    auto shape = matrix.constant.shape();
    shape[matrix.transposed ? 0 : 1] = spec.width;
    variant.constants.emplace_back(op.inputs[1], Constant::copy(dtype, shape, narrow));
    if (adds(op)) {
        auto like = circuit.constant(op.inputs[2])->shape();
        like.back() = spec.width;
        variant.constants.emplace_back(op.inputs[2], Constant::copy(dtype, like, added));
    }
    variant.narrowed = true;
    return variant;
}

// A product with only the columns of some lanes, each changed as its lane says; all columns of it
// are compiled in, as the engine wants constant matrices.
void Runner::run_columns_of(const Golden& golden, std::size_t number, std::span<Lane*> lanes,
                            const Watch& watch) {
    const auto start = now_seconds();
    const auto& step = circuit_.steps()[number];
    const auto& op = circuit_.graph().op(step.op);
    const Matrix matrix{*circuit_.constant(op.inputs[1]), step.footprint.columns_transposed};
    const auto element = matrix.element();
    const auto width = (lanes.size() + column_step - 1) / column_step * column_step;
    ProgramSpec spec{.step = number,
                     .form = ProgramSpec::Form::columns,
                     .width = static_cast<std::int64_t>(width)};
    for (const auto* lane : lanes) {
        spec.columns.push_back(*column_of(*lane, number, op, matrix));
    }
    spec.columns.resize(width, spec.columns.front());
    const auto& columns = spec.columns;
    const auto id = step.outputs[0];
    const auto& wanted = golden.values[index(id)];
    const auto rows = wanted.element_count() / matrix.columns();
    const auto run = [&] {
        auto made = run_program(parts_->programs.get(spec, golden.values), step, golden.values)[0];
        if (made.bytes().size() != rows * width * element) {
            throw Error(Fault::engine, "a product of some columns has another size");
        }
        return made;
    };

    auto& works = parts_->columns[number].works;
    std::optional<Value> made;
    try {
        if (!works.contains(width)) {
            const auto check = run();
            bool same = true;
            for (std::size_t r = 0; r < rows && same; ++r) {
                for (std::size_t c = 0; c < width && same; ++c) {
                    same = std::memcmp(check.bytes().data() + (r * width + c) * element,
                                       wanted.bytes().data() +
                                           (r * matrix.columns() + columns[c]) * element,
                                       element) == 0;
                }
            }
            saved_.uncalibrated += same ? 0 : 1;
            works[width] = same;
        }
        if (works[width]) {
            for (const auto* lane : lanes) {
                spec.add(*lane);
            }
            made = run();
        }
    } catch (const Error&) {
        works[width] = false;  // each alone says what is wrong
    }
    if (!made) {
        for (auto* lane : lanes) {
            run_whole(golden, number, *lane, watch);
        }
        return;
    }
    saved_.columns += lanes.size();
    std::vector<Patch> patches(lanes.size());
    for (std::size_t c = 0; c < lanes.size(); ++c) {
        auto& patch = patches[c];
        patch.high = 1;
        for (std::size_t r = 0; r < rows; ++r) {
            const auto* now = made->bytes().data() + (r * width + c) * element;
            const auto place = (r * matrix.columns() + columns[c]) * element;
            if (std::memcmp(now, wanted.bytes().data() + place, element) == 0) {
                continue;
            }
            patch.positions.push_back(static_cast<std::int32_t>(r));
            const auto row = matrix.columns() * element;
            const auto at = patch.cells.size();
            patch.cells.resize(at + row);
            std::memcpy(patch.cells.data() + at, wanted.bytes().data() + r * row, row);
            std::memcpy(patch.cells.data() + at + columns[c] * element, now, element);
        }
    }
    saved_.seconds_columns += now_seconds() - start;
    for (std::size_t c = 0; c < lanes.size(); ++c) {
        std::vector<std::pair<TensorId, Patch>> outputs;
        if (!patches[c].positions.empty()) {
            outputs.emplace_back(id, std::move(patches[c]));
        }
        finish(golden, number, *lanes[c], std::move(outputs), watch);
    }
}

}  // namespace trocar::inject
