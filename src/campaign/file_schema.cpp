#include "trocar/campaign_file.h"

namespace trocar {

std::string campaign_schema() {
    return R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "trocar.campaign.schema.json",
  "title": "A fault-injection campaign of trocar",
  "type": "object",
  "additionalProperties": false,
  "$defs": {
    "texts": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "share": {"oneOf": [{"type": "number", "minimum": 0, "maximum": 1},
                        {"type": "string", "pattern": "^[0-9.eE+-]+ *%$"}]},
    "natural": {"type": "integer", "minimum": 0},
    "positive": {"type": "integer", "minimum": 1},
    "numbers": {"oneOf": [{"type": "number"}, {"type": "string"},
                          {"type": "array", "items": {"type": "number"}}]},
    "size": {"oneOf": [{"type": "integer", "minimum": 1},
                       {"type": "string", "pattern": "^[0-9]+(x[0-9]+)?$"}]},
    "population": {
      "type": "object",
      "description": "Where random faults may be, and what they do",
      "additionalProperties": false,
      "properties": {
        "target": {"enum": ["weights", "activations", "reads", "inputs", "constants"], "default": "weights"},
        "ops": {"type": "string", "description": "Selector of the ops that write the tensor, or read the constant"},
        "tensors": {"type": "string", "description": "Glob on the name of the tensor"},
        "dtype": {"type": "string", "description": "f32, i8, bf16..."},
        "elements": {"type": "string", "description": "[3,0,1,1], [0,2:4,::2], [#17]"},
        "bits": {"description": "30, 23-30, sign, exponent, mantissa, all", "default": "all",
                 "oneOf": [{"type": ["string", "integer"]}, {"type": "array", "items": {"type": ["string", "integer"]}}]},
        "effect": {"type": "string", "default": "flip",
                   "description": "flip, stuck0, stuck1, zero, set A, random A B, add A, multiply A, noise A, gain A, rate P, custom NAME"},
        "bits_at_once": {"type": "integer", "minimum": 1, "maximum": 64, "default": 1},
        "elements_at_once": {"$ref": "#/$defs/positive", "default": 1},
        "extent": {"enum": ["element", "row", "channel", "tensor"], "default": "element"},
        "all_readers": {"type": "boolean", "default": false},
        "duration": {"type": "string", "default": "permanent",
                     "pattern": "^(permanent|transient [0-9]+|every [0-9]+ from [0-9]+)$"}
      }
    },
    "given": {
      "type": "object",
      "description": "Given faults, a trial each",
      "additionalProperties": false,
      "minProperties": 1,
      "properties": {
        "list": {"$ref": "#/$defs/texts"},
        "file": {"type": "string", "description": "File with the faults of a trial on each line"}
      }
    },
    "faults": {"oneOf": [{"$ref": "#/$defs/population"}, {"$ref": "#/$defs/given"}]}
  },
  "properties": {
    "model": {"type": "string", "description": "Model file, from the folder of this file"},
    "engine": {"type": "string", "description": "NAME[:PATH][,KEY=VALUE...]"},
    "threads": {"type": "integer", "minimum": 0, "maximum": 4096, "default": 0},
    "view": {"enum": ["auto", "source", "deployed"], "default": "auto"},
    "seed": {"$ref": "#/$defs/natural"},
    "data": {
      "oneOf": [
        {"type": "string"},
        {
          "type": "object",
          "additionalProperties": false,
          "required": ["path"],
          "properties": {
            "path": {"type": "string"},
            "kind": {"enum": ["images", "arrays", "idx", "cifar10", "cifar100", "events"]},
            "labels": {"type": "string"},
            "split": {"enum": ["test", "train"]},
            "offset": {"$ref": "#/$defs/natural"},
            "limit": {"$ref": "#/$defs/positive"},
            "preprocess": {
              "type": "object",
              "additionalProperties": false,
              "properties": {
                "from": {"enum": ["automatic", "nchw", "nhwc", "flat"]},
                "color": {"enum": ["as_is", "rgb", "bgr", "gray"]},
                "resize": {"$ref": "#/$defs/size"},
                "filter": {"enum": ["bilinear", "antialias", "nearest"]},
                "crop": {"$ref": "#/$defs/size"},
                "scale": {"type": ["number", "string"]},
                "mean": {"$ref": "#/$defs/numbers"},
                "std": {"$ref": "#/$defs/numbers"},
                "layout": {"enum": ["automatic", "nchw", "nhwc", "flat"]},
                "steps": {"$ref": "#/$defs/positive"},
                "split": {"type": "string"},
                "values": {"type": "string"},
                "sensor": {"$ref": "#/$defs/size"},
                "downscale": {"$ref": "#/$defs/positive"},
                "batch": {"$ref": "#/$defs/natural"},
                "command": {"type": "string"}
              }
            }
          }
        }
      ]
    },
    "inputs": {
      "description": "Where the values of inputs come from when there is no data",
      "oneOf": [
        {"$ref": "#/$defs/texts"},
        {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "sources": {"$ref": "#/$defs/texts"},
            "shapes": {"$ref": "#/$defs/texts"},
            "fill": {"type": ["string", "number"]}
          }
        }
      ]
    },
    "faults": {"oneOf": [{"$ref": "#/$defs/faults"},
                         {"type": "array", "items": {"$ref": "#/$defs/faults"}}]},
    "trials": {
      "oneOf": [
        {"$ref": "#/$defs/positive"},
        {"const": "exhaustive"},
        {
          "type": "object",
          "additionalProperties": false,
          "required": ["margin"],
          "properties": {"margin": {"$ref": "#/$defs/share"}, "confidence": {"$ref": "#/$defs/share"}}
        }
      ]
    },
    "confidence": {"$ref": "#/$defs/share", "default": 0.95, "description": "Confidence of the intervals of the campaign"},
    "stratify": {"oneOf": [{"enum": ["layer", "bit", "target"]},
                           {"type": "array", "items": {"enum": ["layer", "bit", "target"]}}]},
    "allocation": {"enum": ["proportional", "equal", "data-aware"], "default": "proportional"},
    "importance": {
      "description": "How often some faults are drawn, against others",
      "type": "array",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "minProperties": 1,
        "properties": {
          "bits": {"type": ["string", "integer"]},
          "layers": {"type": "string", "description": "Glob on the name of the layer"},
          "factor": {"type": "number", "exclusiveMinimum": 0, "default": 1}
        }
      }
    },
    "stop_at": {"$ref": "#/$defs/share", "description": "Half-width of the interval of the SDC rate"},
    "faults_per_trial": {"$ref": "#/$defs/positive", "default": 1},
    "inputs_per_fault": {"oneOf": [{"$ref": "#/$defs/positive"}, {"const": "all"}], "default": "all"},
    "only_correct": {"type": "boolean", "default": false},
    "monitors": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "nan": {"enum": ["outputs", "all"], "default": "outputs"},
        "ranges": {"enum": ["off", "observe", "clip", false], "default": "off"},
        "margin": {"type": "number", "minimum": 0, "default": 0}
      }
    },
    "decision": {"type": "string", "default": "auto",
                 "pattern": "^(auto|none|(scores|equal)(:.*)?|topk:[0-9]+(:.*)?|error:[0-9.eE+-]+(:.*)?)$",
                 "description": "What counts as SDC: scores[:OUTPUT[:AXIS]], equal[:OUTPUT], topk:K[:OUTPUT], error:LIMIT[:OUTPUT], none, auto"},
    "postprocess": {"type": "string", "description": "Command that makes of outputs what decisions are taken from"},
    "metric": {"type": "string", "description": "Command that measures a faulty output"},
    "answer_limit": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds that these commands may take for an answer"},
    "tools": {"description": "Tool libraries that prepare inputs, make of outputs what decisions are taken from, or measure: PATH[,key=value…]",
              "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "layer_effects": {"type": "boolean", "default": false},
    "accelerate": {
      "oneOf": [
        {"type": "boolean"},
        {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "prefix": {"type": "boolean"},
            "dead": {"type": "boolean"},
            "region": {"type": "boolean"},
            "channels": {"type": "boolean"},
            "screen": {"type": "boolean"},
            "twins": {"type": "boolean"},
            "batch": {"$ref": "#/$defs/positive"}
          }
        }
      ]
    },
    "memory": {"oneOf": [{"$ref": "#/$defs/natural"},
                         {"type": "string", "pattern": "^[0-9.]+ *([kMGT]?B|[KMGT]iB)?$"}], "default": "2 GiB"},
    "workers": {"type": "integer", "minimum": 0, "maximum": 4096, "default": 0},
    "audit": {"$ref": "#/$defs/share", "description": "Share of the runs that are done again by brute force"},
    "isolate": {"type": "boolean", "default": true, "description": "Run the engine in a child process: crash and hang are outcomes"},
    "time_limit": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds that a trial may take; 100 golden runs and 10 s at least without it"},
    "store": {"type": "string", "description": "File for the results"}
  }
}
)";
}

}  // namespace trocar
