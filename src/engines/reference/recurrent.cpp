// RNN, GRU and LSTM.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

// --- Activations --------------------------------------------------------------------------------

struct Activation {
    double (*function)(double x, double alpha, double beta);
    double alpha = 0;
    double beta = 0;
    double operator()(double x) const { return function(x, alpha, beta); }
};

struct KnownActivation {
    const char* name;
    double (*function)(double, double, double);
    bool has_alpha;
    bool has_beta;
    double alpha;
    double beta;
};

// In lower case: names are compared without regard to it.
constexpr KnownActivation known_activations[]{
    {"relu", [](double x, double, double) { return std::max(x, 0.0); }, false, false, 0, 0},
    {"tanh", [](double x, double, double) { return std::tanh(x); }, false, false, 0, 0},
    {"sigmoid", [](double x, double, double) { return 1 / (1 + std::exp(-x)); }, false, false, 0,
     0},
    {"affine", [](double x, double a, double b) { return a * x + b; }, true, true, 1, 0},
    {"leakyrelu", [](double x, double a, double) { return x < 0 ? a * x : x; }, true, false, 0.01F,
     0},
    {"thresholdedrelu", [](double x, double a, double) { return x > a ? x : 0.0; }, true, false, 1,
     0},
    {"scaledtanh", [](double x, double a, double b) { return a * std::tanh(b * x); }, true, true, 1,
     1},
    {"hardsigmoid", [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); },
     true, true, 0.2F, 0.5F},
    {"elu", [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }, true, false,
     1, 0},
    {"softsign", [](double x, double, double) { return x / (1 + std::abs(x)); }, false, false, 0,
     0},
    {"softplus", [](double x, double, double) { return std::log1p(std::exp(x)); }, false, false, 0,
     0},
};

const KnownActivation& find_activation(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const auto& known : known_activations) {
        if (name == known.name) {
            return known;
        }
    }
    fail(fmt::format("there is no activation '{}'", name));
}

// Alphas and betas are taken in turn by the functions that have them.
std::vector<Activation> activations_of(const Call& call, std::size_t directions,
                                       const std::vector<std::string>& usual) {
    auto names = call.texts("activations").value_or(std::vector<std::string>{});
    while (names.size() < directions * usual.size()) {
        names.push_back(usual[names.size() % usual.size()]);
    }
    const auto alphas = call.numbers("activation_alpha").value_or(Numbers{});
    const auto betas = call.numbers("activation_beta").value_or(Numbers{});
    std::size_t alpha = 0;
    std::size_t beta = 0;
    std::vector<Activation> made;
    for (const auto& name : names) {
        const auto& known = find_activation(name);
        Activation one{known.function, known.alpha, known.beta};
        if (known.has_alpha && alpha < alphas.size()) {
            one.alpha = alphas[alpha++];
        }
        if (known.has_beta && beta < betas.size()) {
            one.beta = betas[beta++];
        }
        made.push_back(one);
    }
    return made;
}

// --- The op as its inputs have it ---------------------------------------------------------------

struct Network {
    std::size_t steps = 0;
    std::size_t batch = 0;
    std::size_t width = 0;  // of the input
    std::size_t hidden = 0;
    std::size_t gates = 0;
    std::size_t directions = 1;
    std::string direction;
    bool batch_first = false;
    double clip = 0;  // 0: none
    Numbers x;        // steps, batch, width
    Numbers w, r, b, p;
    Numbers h, c;  // directions, batch, hidden
    Integers lengths;
    std::vector<Activation> activations;
};

// Exchanges the first two dimensions.
Numbers exchanged(const Numbers& x, std::size_t first, std::size_t second) {
    Numbers made(x.size());
    const auto block = first * second == 0 ? 0 : x.size() / (first * second);
    for (std::size_t i = 0; i < first; ++i) {
        for (std::size_t j = 0; j < second; ++j) {
            std::copy_n(x.begin() + to_integer((i * second + j) * block), block,
                        made.begin() + to_integer((j * first + i) * block));
        }
    }
    return made;
}

Numbers optional_numbers(const Call& call, std::size_t slot, std::size_t size) {
    if (!call.has(slot)) {
        return Numbers(size, 0.0);
    }
    auto numbers = call.numbers(slot);
    if (numbers.size() != size) {
        fail(fmt::format("input {} has {} elements, not {}", slot, numbers.size(), size));
    }
    return numbers;
}

Network network_of(const Call& call, std::size_t gates, const std::vector<std::string>& usual) {
    Network n;
    n.gates = gates;
    n.direction = call.text("direction", "forward");
    require(n.direction == "forward" || n.direction == "reverse" || n.direction == "bidirectional",
            "there is no such direction");
    n.directions = n.direction == "bidirectional" ? 2 : 1;
    n.batch_first = call.integer("layout", 0) != 0;
    n.clip = call.number("clip", 0);
    const auto shape = call.shape(0);
    require(shape.size() == 3 && call.shape(2).size() == 3, "three dimensions are wanted");
    n.steps = to_size(shape[n.batch_first ? 1 : 0]);
    n.batch = to_size(shape[n.batch_first ? 0 : 1]);
    n.width = to_size(shape[2]);
    n.hidden = to_size(call.shape(2)[2]);
    require(to_size(call.integer("hidden_size", to_integer(n.hidden))) == n.hidden,
            "hidden_size is not that of the weights");
    n.x = n.batch_first ? exchanged(call.numbers(0), n.batch, n.steps) : call.numbers(0);
    const auto rows = n.directions * gates * n.hidden;
    require(call.has(1) && call.has(2), "the weights are missing");
    n.w = optional_numbers(call, 1, rows * n.width);
    n.r = optional_numbers(call, 2, rows * n.hidden);
    n.b = optional_numbers(call, 3, 2 * rows);
    const auto states = n.directions * n.batch * n.hidden;
    const bool lstm = gates == 4;
    n.h = optional_numbers(call, 5, states);
    n.c = lstm ? optional_numbers(call, 6, states) : Numbers(states, 0.0);
    n.p = lstm ? optional_numbers(call, 7, n.directions * 3 * n.hidden) : Numbers{};
    if (n.batch_first) {
        n.h = exchanged(n.h, n.batch, n.directions);
        n.c = exchanged(n.c, n.batch, n.directions);
    }
    n.lengths = call.has(4) ? call.integers(4) : Integers(n.batch, to_integer(n.steps));
    require(n.lengths.size() == n.batch, "one length per sample is wanted");
    for (const auto length : n.lengths) {
        require(length >= 0 && to_size(length) <= n.steps, "a length is out of range");
    }
    n.activations = activations_of(call, n.directions, usual);
    return n;
}

// --- One direction ------------------------------------------------------------------------------

// The weights of one direction, and room for the sums of one step.
struct Cell {
    const Network& n;
    const double* w;
    const double* r;
    const double* wb;
    const double* rb;
    const double* p;
    const Activation* f;
    Numbers from_input;   // of every gate: W x + Wb
    Numbers from_hidden;  // R h + Rb

    double bounded(double x) const { return n.clip > 0 ? std::clamp(x, -n.clip, n.clip) : x; }
    double sum(std::size_t gate, std::size_t i) const {
        return from_input[gate * n.hidden + i] + from_hidden[gate * n.hidden + i];
    }
};

void multiply(const double* matrix, const double* bias, const double* x, std::size_t columns,
              Numbers& result) {
    for (std::size_t row = 0; row < result.size(); ++row) {
        double total = 0;
        const double* weights = matrix + row * columns;
        for (std::size_t i = 0; i < columns; ++i) {
            total += weights[i] * x[i];
        }
        result[row] = total + bias[row];
    }
}

void rnn_step(Cell& cell, double* h, double* /*c*/) {
    for (std::size_t i = 0; i < cell.n.hidden; ++i) {
        h[i] = cell.f[0](cell.bounded(cell.sum(0, i)));
    }
}

// Gates: update z, reset r, hidden h.
template <bool linear_before_reset>
void gru_step(Cell& cell, double* h, double* /*c*/) {
    const auto size = cell.n.hidden;
    Numbers z(size);
    Numbers reset(size);
    for (std::size_t i = 0; i < size; ++i) {
        z[i] = cell.f[0](cell.bounded(cell.sum(0, i)));
        reset[i] = cell.f[0](cell.bounded(cell.sum(1, i)));
    }
    Numbers again(size);
    if (!linear_before_reset) {
        Numbers kept(size);
        for (std::size_t i = 0; i < size; ++i) {
            kept[i] = reset[i] * h[i];
        }
        multiply(cell.r + 2 * size * size, cell.rb + 2 * size, kept.data(), size, again);
    }
    for (std::size_t i = 0; i < size; ++i) {
        const double recurrent =
            linear_before_reset ? reset[i] * cell.from_hidden[2 * size + i] : again[i];
        const double fresh = cell.f[1](cell.bounded(cell.from_input[2 * size + i] + recurrent));
        h[i] = (1 - z[i]) * fresh + z[i] * h[i];
    }
}

// Gates: input i, output o, forget f, cell c. Peepholes: i, o, f.
template <bool input_forget>
void lstm_step(Cell& cell, double* h, double* c) {
    const auto size = cell.n.hidden;
    for (std::size_t i = 0; i < size; ++i) {
        const double in = cell.f[0](cell.bounded(cell.sum(0, i) + cell.p[i] * c[i]));
        const double forget =
            input_forget ? 1 - in
                         : cell.f[0](cell.bounded(cell.sum(2, i) + cell.p[2 * size + i] * c[i]));
        const double fresh = cell.f[1](cell.bounded(cell.sum(3, i)));
        c[i] = forget * c[i] + in * fresh;
        const double out = cell.f[0](cell.bounded(cell.sum(1, i) + cell.p[size + i] * c[i]));
        h[i] = out * cell.f[2](c[i]);
    }
}

using CellStep = void (*)(Cell& cell, double* h, double* c);

// Fills y (steps, directions, batch, hidden) and leaves the last states in the network.
void run_direction(Network& n, std::size_t d, CellStep step, Numbers& y) {
    const auto rows = n.gates * n.hidden;
    Cell cell{n,
              n.w.data() + d * rows * n.width,
              n.r.data() + d * rows * n.hidden,
              n.b.data() + d * 2 * rows,
              n.b.data() + d * 2 * rows + rows,
              n.p.data() + d * 3 * n.hidden * (n.p.empty() ? 0 : 1),
              n.activations.data() + d * (n.activations.size() / n.directions),
              Numbers(rows),
              Numbers(rows)};
    const bool backwards = n.direction == "reverse" || d == 1;
    for (std::size_t sample = 0; sample < n.batch; ++sample) {
        double* h = n.h.data() + (d * n.batch + sample) * n.hidden;
        double* c = n.c.data() + (d * n.batch + sample) * n.hidden;
        const auto length = to_size(n.lengths[sample]);
        for (std::size_t i = 0; i < length; ++i) {
            const auto t = backwards ? length - 1 - i : i;
            multiply(cell.w, cell.wb, n.x.data() + (t * n.batch + sample) * n.width, n.width,
                     cell.from_input);
            multiply(cell.r, cell.rb, h, n.hidden, cell.from_hidden);
            step(cell, h, c);
            std::copy_n(
                h, n.hidden,
                y.begin() + to_integer(((t * n.directions + d) * n.batch + sample) * n.hidden));
        }
    }
}

void run(Call& call, Network n, CellStep step) {
    const auto dim = [](std::size_t size) { return to_integer(size); };
    Shape shape{dim(n.steps), dim(n.directions), dim(n.batch), dim(n.hidden)};
    Shape state{dim(n.directions), dim(n.batch), dim(n.hidden)};
    Numbers y(count(shape), 0.0);
    for (std::size_t d = 0; d < n.directions; ++d) {
        run_direction(n, d, step, y);
    }
    if (n.batch_first) {
        // Steps and directions trade places with the batch.
        y = exchanged(y, n.steps * n.directions, n.batch);
        shape = {dim(n.batch), dim(n.steps), dim(n.directions), dim(n.hidden)};
        n.h = exchanged(n.h, n.directions, n.batch);
        n.c = exchanged(n.c, n.directions, n.batch);
        state = {dim(n.batch), dim(n.directions), dim(n.hidden)};
    }
    call.give(0, call.dtype(0), shape, y);
    call.give(1, call.dtype(0), state, n.h);
    call.give(2, call.dtype(0), state, n.c);
}

void rnn(Call& call) {
    run(call, network_of(call, 1, {"Tanh"}), rnn_step);
}

void gru(Call& call) {
    const bool linear = call.integer("linear_before_reset", 0) != 0;
    run(call, network_of(call, 3, {"Sigmoid", "Tanh"}), linear ? gru_step<true> : gru_step<false>);
}

void lstm(Call& call) {
    const bool coupled = call.integer("input_forget", 0) != 0;
    run(call, network_of(call, 4, {"Sigmoid", "Tanh", "Tanh"}),
        coupled ? lstm_step<true> : lstm_step<false>);
}

}  // namespace

std::span<const Entry> recurrent_ops() {
    static constexpr Entry ops[]{
        {"GRU", gru},
        {"LSTM", lstm},
        {"RNN", rnn},
    };
    return ops;
}

}  // namespace trocar::reference
