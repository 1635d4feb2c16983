#include "mapping/blocks.h"

namespace trocar::mapping {

namespace {

void layout_part(Cursor& at, LayoutOp& op) {
    if (at.take_word("axis")) {
        op.axis = at.name("an attribute");
    } else if (at.take_word("keep")) {
        op.keep = at.name("an attribute");
    } else if (at.take_word("axes")) {
        op.axes = at.slot();
    } else if (at.take_word("pairs")) {
        op.pairs = at.slot();
    } else if (at.take_word("rows")) {
        op.rows = at.slot();
    } else if (at.take_word("sizes")) {
        op.sizes.push_back(at.slot());
    } else {
        at.fail_here("'axis', 'axes', 'sizes', 'pairs', 'rows', 'keep' or ';'");
    }
}

double number(Cursor& at) {
    const bool negative = at.take("-");
    if (at.here().kind != Token::Kind::number && at.here().kind != Token::Kind::integer) {
        at.fail_here("a number");
    }
    const auto token = at.next();
    const double value =
        token.kind == Token::Kind::number ? token.number : static_cast<double>(token.integer);
    return negative ? -value : value;
}

void integer_part(Cursor& at, IntegerOp& op) {
    using Kind = IntegerOp::Kind;
    if (at.take_word("weights")) {
        op.weights = at.slot();
        at.expect_word("axis");
        op.axis = static_cast<std::size_t>(at.slot());
    } else if (at.take_word("bias")) {
        op.bias = at.slot();
    } else if (at.take_word("same")) {
        op.kind = Kind::same;
    } else if (at.take_word("largest")) {
        op.largest = true;
    } else if (at.take_word("joined")) {
        op.kind = Kind::joined;
    } else if (at.take_word("makes")) {
        op.kind = Kind::fixed;
        op.scale = number(at);
        op.zero_point = static_cast<std::int64_t>(number(at));
    } else if (at.take_word("number")) {
        op.number = at.slot();
    } else {
        at.fail_here("'weights', 'bias', 'same', 'largest', 'joined', 'makes', 'number' or ';'");
    }
}

}  // namespace

void parse_layout(Cursor& at, Layout& made) {
    at.expect_word("by");
    made.transpose = at.name("the op that transposes");
    if (at.here().kind == Token::Kind::integer) {
        made.slot = at.slot();
    } else {
        made.attribute = at.name("its attribute, or the number of its input");
    }
    at.expect("{");
    while (!at.take("}")) {
        LayoutOp op;
        op.type = at.name("the type of an op");
        while (!at.take(";")) {
            layout_part(at, op);
        }
        made.through.push_back(std::move(op));
    }
}

void parse_fused(Cursor& at, Fused& made) {
    at.expect_word("by");
    made.attribute = at.name("an attribute");
    at.expect("{");
    while (!at.take("}")) {
        auto type = at.name("the type of an op");
        if (at.here().kind != Token::Kind::text) {
            at.fail_here("what the attribute then says, in quotes");
        }
        made.activations.emplace(std::move(type), at.next().text);
        at.expect(";");
    }
    at.expect_word("into");
    do {
        made.into.push_back(at.name("the type of an op"));
    } while (at.take(","));
    at.expect(";");
}

void parse_integers(Cursor& at, Integers& made) {
    at.expect_word("by");
    made.quantize = at.name("the op that quantises");
    at.expect(",");
    made.dequantize = at.name("the op that dequantises");
    at.expect("{");
    while (!at.take("}")) {
        IntegerOp op;
        op.type = at.name("the type of an op");
        while (!at.take(";")) {
            integer_part(at, op);
        }
        made.ops.push_back(std::move(op));
    }
}

}  // namespace trocar::mapping
