#include "trocar/command.h"
#include "trocar/data.h"
#include "trocar/error.h"

namespace trocar {

void declare_data_options(Args& args, DataArguments& arguments) {
    args.option(
        "--data", arguments.path, "PATH",
        "Samples: a folder of pictures (labels.csv or a folder for each class), .npz, .npy, "
        "MNIST's idx files, CIFAR's .bin, .aedat recordings");
    args.option("--data-kind", arguments.kind, "KIND",
                "What --data is, where that is not seen: images, arrays, idx, cifar10, cifar100, "
                "events");
    args.option("--labels", arguments.labels, "FILE", "Labels, where they are not beside the data");
    args.option("--split", arguments.split, "test|train",
                "Which part of data that comes in two; test unless said");
    args.option("--prep", arguments.preprocess, "STEPS",
                "What is done with each sample: 'resize=256 crop=224 scale=1/255 mean=… std=…', or "
                "imagenet");
    args.option("--offset", arguments.offset, "N", "Samples to leave out in front");
    args.option("--limit", arguments.limit, "N", "At most so many samples");
}

DataOptions chosen_data(const DataArguments& arguments) {
    if (arguments.path.empty()) {
        throw Error(Fault::usage, "no data is given", "name it with --data PATH");
    }
    if (arguments.limit < 0) {
        throw Error(Fault::usage, "--limit must be positive");
    }
    DataOptions options;
    options.path = arguments.path;
    options.kind = arguments.kind;
    options.labels = arguments.labels;
    options.split = arguments.split;
    options.preprocess = parse_preprocess(arguments.preprocess);
    options.offset = arguments.offset;
    if (arguments.limit > 0) {
        options.limit = arguments.limit;
    }
    return options;
}

}  // namespace trocar
