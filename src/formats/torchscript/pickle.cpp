#include "formats/torchscript/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "trocar/error.h"

namespace trocar::torchscript {

namespace {

using PickledKind = Pickled::Kind;

constexpr std::size_t most_values = std::size_t{1} << 22;
constexpr std::size_t most_copied = std::size_t{64} << 20;  // bytes

struct StorageType {
    const char* name;
    DType dtype;
};
constexpr StorageType storage_types[] = {
    {"FloatStorage", DType::f32},
    {"DoubleStorage", DType::f64},
    {"HalfStorage", DType::f16},
    {"BFloat16Storage", DType::bf16},
    {"ByteStorage", DType::u8},
    {"CharStorage", DType::i8},
    {"ShortStorage", DType::i16},
    {"IntStorage", DType::i32},
    {"LongStorage", DType::i64},
    {"BoolStorage", DType::boolean},
    {"ComplexFloatStorage", DType::c64},
    {"ComplexDoubleStorage", DType::c128},
    {"QInt8Storage", DType::i8},
    {"QUInt8Storage", DType::u8},
    {"QInt32Storage", DType::i32},
    {"UInt16Storage", DType::u16},
    {"UInt32Storage", DType::u32},
    {"UInt64Storage", DType::u64},
    {"Float8_e5m2Storage", DType::f8e5m2},
    {"Float8_e4m3fnStorage", DType::f8e4m3fn},
};

}  // namespace

const Pickled* Pickled::attribute(std::string_view name) const {
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        if (items[i]->kind == PickledKind::text && items[i]->text == name) {
            return items[i + 1];
        }
    }
    return nullptr;
}

// The stack machine that a pickle is a program of.
class Unpickler {
public:
    Unpickler(Pickle& pickle, Bytes bytes, std::string where)
        : pickle_(pickle), bytes_(bytes), where_(std::move(where)) {}

    const Pickled* run() {
        for (;;) {
            const auto code = byte();
            if (code == '.') {
                return pop();
            }
            step(code);
        }
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(Fault::input, fmt::format("{}: byte {}: {}", where_, at_, what));
    }
    [[noreturn]] void refuse(const std::string& what) const {
        throw Error(Fault::unsupported, fmt::format("{}: {}", where_, what),
                    "pickles are never executed: only what torch.jit.save writes is read");
    }

    Bytes take(std::size_t count) {
        if (count > bytes_.size() - at_) {
            fail(fmt::format("the pickle ends, {} more bytes expected", count));
        }
        at_ += count;
        return bytes_.subspan(at_ - count, count);
    }
    unsigned char byte() { return static_cast<unsigned char>(take(1)[0]); }
    std::uint64_t number(std::size_t width) {
        std::uint64_t value = 0;
        const auto bytes = take(width);
        for (std::size_t i = width; i-- > 0;) {
            value = value << 8 | static_cast<std::uint64_t>(bytes[i]);
        }
        return value;
    }
    std::string string(std::size_t size) {
        const auto bytes = take(size);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    std::string line() {
        std::string text;
        for (char c = static_cast<char>(byte()); c != '\n'; c = static_cast<char>(byte())) {
            text += c;
        }
        return text;
    }

    // Values may be shared, and what is copied of them again and again adds up.
    const std::vector<const Pickled*>& copied(const std::vector<const Pickled*>& items) {
        count_copied(items.size() * sizeof(void*));
        return items;
    }
    const std::string& copied(const std::string& text) {
        count_copied(text.size());
        return text;
    }
    void count_copied(std::size_t bytes) {
        copied_ += bytes;
        if (copied_ > most_copied) {
            fail("it makes too many values");
        }
    }

    Pickled* make(PickledKind kind) {
        if (pickle_.all_.size() >= most_values) {
            fail("it makes too many values");
        }
        auto& made = pickle_.all_.emplace_back();
        made.kind = kind;
        return &made;
    }
    void push(Pickled* value) {
        if (stack_.size() >= most_values) {
            fail("it makes too many values");
        }
        stack_.push_back(value);
    }
    void push_integer(std::int64_t value, PickledKind kind = PickledKind::integer) {
        auto* made = make(kind);
        made->integer = value;
        push(made);
    }
    void push_text(std::string text) {
        auto* made = make(PickledKind::text);
        made->text = std::move(text);
        push(made);
    }
    Pickled* pop() {
        if (stack_.empty() || stack_.back() == nullptr) {
            fail("a value is missing");
        }
        auto* value = stack_.back();
        stack_.pop_back();
        return value;
    }
    Pickled* top() const {
        if (stack_.empty() || stack_.back() == nullptr) {
            fail("a value is missing");
        }
        return stack_.back();
    }
    // Down to the last mark, which is a nullptr.
    std::vector<const Pickled*> pop_marked() {
        std::size_t from = stack_.size();
        while (from > 0 && stack_[from - 1] != nullptr) {
            --from;
        }
        if (from == 0) {
            fail("a mark is missing");
        }
        std::vector<const Pickled*> items(stack_.begin() + static_cast<std::ptrdiff_t>(from),
                                          stack_.end());
        stack_.resize(from - 1);
        return items;
    }
    void push_tuple(std::size_t count) {
        auto* made = make(PickledKind::tuple);
        made->items.resize(count);
        for (std::size_t i = count; i-- > 0;) {
            made->items[i] = pop();
        }
        push(made);
    }
    void add_items(std::vector<const Pickled*> items, PickledKind kind) {
        auto* target = top();
        if (target->kind != kind || (kind == PickledKind::dict && items.size() % 2 != 0)) {
            fail("items are added to what is no list or dictionary of them");
        }
        target->items.insert(target->items.end(), items.begin(), items.end());
    }

    void step(unsigned char code) {
        switch (code) {
            case 0x80:  // the version of the pickle
                if (const auto version = byte(); version > 5) {
                    refuse(fmt::format("it is a pickle of version {}", version));
                }
                return;
            case '(':
                push(nullptr);
                return;
            case 'N':
                push(make(PickledKind::none));
                return;
            case 0x88:
            case 0x89:
                push_integer(code == 0x88 ? 1 : 0, PickledKind::truth);
                return;
            case 'J':
                push_integer(static_cast<std::int32_t>(number(4)));
                return;
            case 'K':
                push_integer(static_cast<std::int64_t>(number(1)));
                return;
            case 'M':
                push_integer(static_cast<std::int64_t>(number(2)));
                return;
            case 0x8a:
                push_long();
                return;
            case 'G': {
                auto* made = make(PickledKind::real);
                std::uint64_t bits = 0;
                for (const auto one : take(8)) {
                    bits = bits << 8 | static_cast<std::uint64_t>(one);
                }
                made->real = std::bit_cast<double>(bits);
                push(made);
                return;
            }
            case 'X':
            case 'T':
                push_text(string(number(4)));
                return;
            case 0x8c:
            case 'U':
                push_text(string(number(1)));
                return;
            default:
                collect(code);
        }
    }

    void push_long() {
        const auto size = number(1);
        if (size > 8) {
            refuse("it holds an integer of more than 64 bits");
        }
        auto value = number(size);
        if (size > 0 && size < 8 && (value >> (8 * size - 1) & 1) != 0) {
            value |= ~std::uint64_t{0} << (8 * size);
        }
        push_integer(static_cast<std::int64_t>(value));
    }

    void collect(unsigned char code) {
        switch (code) {
            case ')':
                push(make(PickledKind::tuple));
                return;
            case 0x85:
            case 0x86:
            case 0x87:
                push_tuple(code - 0x84U);
                return;
            case 't': {
                auto items = pop_marked();
                auto* made = make(PickledKind::tuple);
                made->items = std::move(items);
                push(made);
                return;
            }
            case ']':
                push(make(PickledKind::list));
                return;
            case 'a': {
                const auto* item = pop();
                add_items({item}, PickledKind::list);
                return;
            }
            case 'e': {
                auto items = pop_marked();
                add_items(std::move(items), PickledKind::list);
                return;
            }
            case '}':
                push(make(PickledKind::dict));
                return;
            case 's': {
                const auto* value = pop();
                const auto* key = pop();
                add_items({key, value}, PickledKind::dict);
                return;
            }
            case 'u': {
                auto items = pop_marked();
                add_items(std::move(items), PickledKind::dict);
                return;
            }
            case 'q':
                memo_[number(1)] = top();
                return;
            case 'r':
                memo_[number(4)] = top();
                return;
            case 'h':
                push(known(number(1)));
                return;
            case 'j':
                push(known(number(4)));
                return;
            default:
                call(code);
        }
    }
    Pickled* known(std::uint64_t place) const {
        const auto found = memo_.find(place);
        if (found == memo_.end()) {
            fail(fmt::format("it refers to value {}, which it has not kept", place));
        }
        return found->second;
    }

    void call(unsigned char code) {
        switch (code) {
            case 'c': {
                auto* made = make(PickledKind::global);
                const auto module = line();
                made->text = fmt::format("{}.{}", module, line());
                push(made);
                return;
            }
            case 'R': {
                const auto* arguments = pop();
                const auto* function = pop();
                if (arguments->kind != PickledKind::tuple ||
                    function->kind != PickledKind::global) {
                    fail("a call is broken");
                }
                push(called(function->text, arguments->items));
                return;
            }
            case 0x81: {
                pop();
                const auto* of = pop();
                if (of->kind != PickledKind::global || !of->text.starts_with("__torch__.")) {
                    refuse(fmt::format("it makes an object of {}",
                                       of->kind == PickledKind::global ? of->text : "no class"));
                }
                auto* made = make(PickledKind::object);
                made->text = copied(of->text);
                push(made);
                return;
            }
            case 'b': {
                const auto* state = pop();
                auto* object = top();
                if (object->kind != PickledKind::object || !object->items.empty()) {
                    refuse("it sets the state of what is no new object");
                }
                if (state->kind == PickledKind::dict) {
                    object->items = copied(state->items);
                } else {
                    object->kind = PickledKind::state;
                    object->items = {state};
                }
                return;
            }
            case 'Q':
                push(storage(pop()));
                return;
            default:
                refuse(fmt::format("byte {}: it has the instruction {:#04x}", at_ - 1, code));
        }
    }

    const Pickled& argument(const std::vector<const Pickled*>& items, std::size_t place,
                            PickledKind kind) const {
        if (place >= items.size() || items[place]->kind != kind) {
            fail("an argument of a call is missing or of another kind");
        }
        return *items[place];
    }

    // ("storage", type, name, device, number of elements)
    Pickled* storage(const Pickled* id) {
        if (id->kind != PickledKind::tuple ||
            argument(id->items, 0, PickledKind::text).text != "storage") {
            refuse("it refers to something outside that is no storage of a tensor");
        }
        const auto& type = argument(id->items, 1, PickledKind::global).text;
        auto* made = make(PickledKind::storage);
        made->tensor = std::make_shared<PickledTensor>();
        const auto name = type.substr(type.rfind('.') + 1);
        for (const auto& known : storage_types) {
            if (name == known.name) {
                made->tensor->where.dtype = known.dtype;
            }
        }
        if (made->tensor->where.dtype == DType::undefined) {
            refuse(fmt::format("a tensor is stored as {}", type));
        }
        made->tensor->storage = copied(argument(id->items, 2, PickledKind::text).text);
        made->tensor->device = copied(argument(id->items, 3, PickledKind::text).text);
        return made;
    }

    std::vector<std::int64_t> integers(const Pickled& tuple) {
        copied(tuple.items);
        std::vector<std::int64_t> all;
        for (std::size_t i = 0; i < tuple.items.size(); ++i) {
            all.push_back(argument(tuple.items, i, PickledKind::integer).integer);
        }
        return all;
    }

    Pickled* rebuilt(const std::vector<const Pickled*>& items, bool quantized) {
        auto* made = make(PickledKind::tensor);
        made->tensor =
            std::make_shared<PickledTensor>(*argument(items, 0, PickledKind::storage).tensor);
        copied(made->tensor->storage);
        copied(made->tensor->device);
        made->tensor->where.offset = argument(items, 1, PickledKind::integer).integer;
        made->tensor->where.shape = integers(argument(items, 2, PickledKind::tuple));
        made->tensor->where.strides = integers(argument(items, 3, PickledKind::tuple));
        if (made->tensor->where.shape.size() != made->tensor->where.strides.size()) {
            fail("a tensor has more sizes than strides, or fewer");
        }
        if (!quantized) {
            made->tensor->requires_grad =
                items.size() > 4 && items[4]->kind == PickledKind::truth && items[4]->integer != 0;
            return made;
        }
        const auto& how = argument(items, 4, PickledKind::tuple).items;
        const auto& scheme = argument(how, 0, PickledKind::global).text;
        made->tensor->quantized = true;
        if (scheme == "torch.per_tensor_affine") {
            made->tensor->scale = argument(how, 1, PickledKind::real).real;
            made->tensor->zero_point = argument(how, 2, PickledKind::integer).integer;
        } else if (scheme == "torch.per_channel_affine") {
            made->tensor->scales = &argument(how, 1, PickledKind::tensor);
            made->tensor->zero_points = &argument(how, 2, PickledKind::tensor);
            made->tensor->axis = argument(how, 3, PickledKind::integer).integer;
        } else {
            refuse(fmt::format("a tensor is quantised by {}", scheme));
        }
        return made;
    }

    Pickled* called(const std::string& function, const std::vector<const Pickled*>& items) {
        if (function == "torch._utils._rebuild_tensor_v2") {
            return rebuilt(items, false);
        }
        if (function == "torch._utils._rebuild_qtensor") {
            return rebuilt(items, true);
        }
        if (function == "collections.OrderedDict") {
            return make(PickledKind::dict);
        }
        constexpr std::string_view build = "torch.jit._pickle.build_";
        if (function.starts_with(build) && function.ends_with("list")) {
            auto* made = make(PickledKind::list);
            made->items = copied(argument(items, 0, PickledKind::list).items);
            made->text = function.substr(build.size(), function.size() - build.size() - 4);
            copied(made->text);
            return made;
        }
        if (function == "torch.jit._pickle.restore_type_tag") {
            if (items.size() != 2) {
                fail("a type tag is broken");
            }
            auto* made = make(items[0]->kind);
            copied(items[0]->items);
            copied(items[0]->text);
            *made = *items[0];
            made->text = copied(argument(items, 1, PickledKind::text).text);
            return made;
        }
        if (function == "torch.device") {
            auto* made = make(PickledKind::device);
            made->text = copied(argument(items, 0, PickledKind::text).text);
            return made;
        }
        if (function == "builtins.complex" || function == "__builtin__.complex") {
            auto* made = make(PickledKind::complex);
            made->real = argument(items, 0, PickledKind::real).real;
            made->imaginary = argument(items, 1, PickledKind::real).real;
            return made;
        }
        if (function.starts_with("__torch__.")) {  // a named tuple, or a value of an enumeration
            auto* made = make(PickledKind::tuple);
            made->items = copied(items);
            made->text = copied(function);
            return made;
        }
        refuse(fmt::format("it calls {}", function));
    }

    Pickle& pickle_;
    Bytes bytes_;
    std::string where_;
    std::size_t at_ = 0;
    std::size_t copied_ = 0;
    std::vector<Pickled*> stack_;
    std::map<std::uint64_t, Pickled*> memo_;
};

Pickle::Pickle(Bytes bytes, std::string where) {
    root_ = Unpickler(*this, bytes, std::move(where)).run();
}

}  // namespace trocar::torchscript
