#include "graph/counting_rules.h"

// Attention ops: two products per head (scores, weighted values), and the projections where the op
// does them. Masked and causal scores count like the others. The softmax takes 5 operations per
// score, scaling one, a mask or bias one.
namespace trocar::counting {
namespace {

struct Heads {
    Number batch;
    Number queries;      // positions that ask
    Number keys;         // positions that are asked, the past included
    Number query_width;  // over all query heads
    Number value_width;  // over all query heads
    Number heads;
};

Work attend(const Heads& h, bool masked) {
    Number pairs = h.batch * h.queries * h.keys;
    return {pairs * (h.query_width + h.value_width), pairs * h.heads * (masked ? 7 : 6)};
}

Number heads_attribute(const OpFacts& facts, const char* name) {
    Number heads = facts.op->integer(name, 0);
    if (heads.value() == 0) {
        misfit("the number of heads is missing");
    }
    return heads;
}

// Positions of a past key or value, [batch, heads, positions, width].
Number past(const OpFacts& facts, std::size_t slot) {
    return has_input(facts, slot) ? dim(input(facts, slot), 2) : Number(0);
}

// Q, K, V: [batch, heads, positions, width], or [batch, positions, heads·width] with the numbers of
// heads as attributes; the past in inputs 4 and 5.
Work onnx_attention(const OpFacts& facts) {
    const Shape& q = input(facts, 0);
    const Shape& k = input(facts, 1);
    const Shape& v = input(facts, 2);
    Heads h;
    h.batch = dim(q, 0);
    if (q.size() == 4) {
        h.heads = q[1];
        h.queries = q[2];
        h.keys = dim(k, 2) + past(facts, 4);
        h.query_width = Number(q[1]) * q[3];
        h.value_width = Number(q[1]) * dim(v, 3);
    } else if (q.size() == 3) {
        h.heads = heads_attribute(facts, "q_num_heads");
        Number kv_heads = heads_attribute(facts, "kv_num_heads");
        h.queries = q[1];
        h.keys = dim(k, 1) + past(facts, 4);
        h.query_width = q[2];
        h.value_width = h.heads * (dim(v, 2).value() / kv_heads.value());
    } else {
        misfit("Q must have three or four dimensions");
    }
    return attend(h, has_input(facts, 3) || facts.op->integer("is_causal", 0) != 0);
}

// input [batch, positions, channels], weights [channels, q + k + v], bias, mask, past
// [2, batch, heads, positions, width].
Work microsoft_attention_with(const OpFacts& facts, std::size_t mask, std::size_t past_slot,
                              int projection_cost) {
    const Shape& x = input(facts, 0);
    const Shape& weights = input(facts, 1);
    Number columns = dim(weights, 1);
    std::vector<std::int64_t> sizes = facts.op->integers("qkv_hidden_sizes");
    Heads h;
    h.heads = heads_attribute(facts, "num_heads");
    h.batch = dim(x, 0);
    h.queries = dim(x, 1);
    h.keys = h.queries;
    if (has_input(facts, past_slot)) {
        h.keys += dim(input(facts, past_slot), 3);
    }
    h.query_width = sizes.size() == 3 ? Number(sizes[0]) : Number(columns.value() / 3);
    h.value_width = sizes.size() == 3 ? Number(sizes[2]) : Number(columns.value() / 3);
    Work work = attend(h, has_input(facts, mask));
    Number projected = h.batch * h.queries * columns;
    work.macs += projected * dim(x, 2);
    work.other += projected * projection_cost;
    return work;
}

Work microsoft_attention(const OpFacts& facts) {
    return microsoft_attention_with(facts, 3, 4, has_input(facts, 2) ? 1 : 0);
}

// QAttention: input, weight, bias, scales, mask, zero points, past.
Work quantized_attention(const OpFacts& facts) {
    return microsoft_attention_with(facts, 5, 8, 2);
}

// query [batch, positions, width] with key and value of the same form, or packed:
// query [batch, positions, heads, 3, width]; key [batch, positions, heads, 2, width]; or key and
// value already [batch, heads, positions, width].
Work multi_head_attention(const OpFacts& facts) {
    const Shape& q = input(facts, 0);
    Heads h;
    h.batch = dim(q, 0);
    h.queries = dim(q, 1);
    h.heads = heads_attribute(facts, "num_heads");
    if (q.size() == 5) {
        h.keys = h.queries;
        h.query_width = h.heads * q[4];
        h.value_width = h.query_width;
    } else {
        const Shape& k = input(facts, 1);
        h.query_width = dim(q, 2);
        if (k.size() == 5) {
            h.keys = k[1];
            h.value_width = h.heads * k[4];
        } else {
            const Shape& v = input(facts, 2);
            h.keys = k.size() == 4 ? Number(k[2]) : dim(k, 1);
            h.value_width = v.size() == 4 ? h.heads * v[3] : dim(v, 2);
        }
    }
    h.keys += past(facts, 6);
    Work work = attend(h, has_input(facts, 4) || has_input(facts, 5));
    if (has_input(facts, 3)) {
        work.other += h.batch * h.queries * (h.query_width + h.query_width + h.value_width);
    }
    return work;
}

// The keys and values that were used are in the outputs, [batch, heads, positions, width].
Work group_query_attention(const OpFacts& facts) {
    const Shape& q = input(facts, 0);
    Heads h;
    h.batch = dim(q, 0);
    h.queries = dim(q, 1);
    h.heads = heads_attribute(facts, "num_heads");
    const Shape& present = output(facts, 1);
    h.keys = dim(present, 2);
    h.query_width = h.heads * dim(present, 3);
    h.value_width = h.query_width;
    return attend(h, true);
}

constexpr NamedRule onnx_attentions[] = {{"Attention", onnx_attention}};
constexpr NamedRule microsoft_attentions[] = {
    {"Attention", microsoft_attention},
    {"DecoderMaskedMultiHeadAttention", multi_head_attention},
    {"GroupQueryAttention", group_query_attention},
    {"MultiHeadAttention", multi_head_attention},
    {"QAttention", quantized_attention},
};

}  // namespace

std::span<const NamedRule> attention_rules(std::string_view domain) {
    if (domain.empty()) {
        return onnx_attentions;
    }
    return domain == "com.microsoft" ? std::span<const NamedRule>(microsoft_attentions)
                                     : std::span<const NamedRule>();
}

}  // namespace trocar::counting
