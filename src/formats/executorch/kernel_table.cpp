#include "formats/executorch/kernels.h"

// The ops that the kernels of ExecuTorch 1.5 compute: name and overload in a file, the overload of
// the op that computes the same without an argument for its result, the arguments in order, and
// behind ">" those that are results. A line that begins with blanks goes on with the one before.
//
// Behind an argument's name stands what it is: t a tensor, i an integer, f a number, n either, b a
// truth value, s a text, d an element type, m a memory format; a capital letter is a list of them,
// "?" may be left out, "!" is changed in place; "=" is what it is when nobody says.
namespace trocar::executorch {

// clang-format off
const char* const kernel_table = R"(
_adaptive_avg_pool2d.out default self:t output_size:I > out:t
_cdist_forward.out default x1:t x2:t p:f compute_mode:i? > out:t
_conj_physical.out default self:t > out:t
_fft_c2r.out default self:t dim:I normalization:i last_dim_size:i > out:t
_fft_r2c.out default self:t dim:I normalization:i onesided:b > out:t
_local_scalar_dense default self:t > out:n
_log_softmax.out default self:t dim:i half_to_float:b > out:t
_native_batch_norm_legit.no_stats_out no_stats input:t weight:t? bias:t? training:b momentum:f
  eps:f > out:t save_mean:t save_invstd:t
_native_batch_norm_legit.out default input:t weight:t? bias:t? running_mean:t! running_var:t!
  training:b momentum:f eps:f > out:t save_mean:t save_invstd:t
_native_batch_norm_legit_no_training.out default input:t weight:t? bias:t? running_mean:t
  running_var:t momentum:f eps:f > out0:t out1:t out2:t
_pdist_forward.out default self:t p:f=2. > out:t
_softmax.out default self:t dim:i half_to_float:b > out:t
_to_copy.out default self:t non_blocking:b=0 memory_format:m?=none > out:t
_upsample_bilinear2d_aa.out default self:t output_size:I align_corners:b scales_h:f?=none
  scales_w:f?=none > out:t
abs.out default self:t > out:t
acos.out default self:t > out:t
acosh.out default self:t > out:t
add.Scalar_out Scalar self:t other:n alpha:n=1 > out:t
add.out Tensor self:t other:t alpha:n=1 > out:t
addmm.out default self:t mat1:t mat2:t beta:n=1 alpha:n=1 > out:t
alias_copy.out default self:t > out:t
amax.out default self:t dim:I=[] keepdim:b=0 > out:t
amin.out default self:t dim:I=[] keepdim:b=0 > out:t
any.all_out default self:t > out:t
any.dims_out dims self:t dim:I?=none keepdim:b=0 > out:t
any.out dim self:t dim:i keepdim:b=0 > out:t
arange.out default end:n > out:t
arange.start_out start_step start:n end:n step:n=1 > out:t
argmax.out default self:t dim:i?=none keepdim:b=0 > out:t
argmin.out default self:t dim:i?=none keepdim:b=0 > out:t
as_strided_copy.out default self:t size:I stride:I storage_offset:i?=none > out:t
asin.out default self:t > out:t
asinh.out default self:t > out:t
atan.out default self:t > out:t
atan2.out default self:t other:t > out:t
atanh.out default self:t > out:t
avg_pool2d.out default self:t kernel_size:I stride:I=[] padding:I=[0,0] ceil_mode:b=0
  count_include_pad:b=1 divisor_override:i?=none > out:t
bitwise_and.Scalar_out Scalar self:t other:n > out:t
bitwise_and.Tensor_out Tensor self:t other:t > out:t
bitwise_left_shift.Tensor_Scalar_out Tensor_Scalar self:t other:n > out:t
bitwise_left_shift.Tensor_out Tensor self:t other:t > out:t
bitwise_not.out default self:t > out:t
bitwise_or.Scalar_out Scalar self:t other:n > out:t
bitwise_or.Tensor_out Tensor self:t other:t > out:t
bitwise_right_shift.Tensor_Scalar_out Tensor_Scalar self:t other:n > out:t
bitwise_right_shift.Tensor_out Tensor self:t other:t > out:t
bitwise_xor.Scalar_out Scalar self:t other:n > out:t
bitwise_xor.Tensor_out Tensor self:t other:t > out:t
bmm.out default self:t mat2:t > out:t
cat.out default tensors:T dim:i=0 > out:t
ceil.out default self:t > out:t
clamp.Tensor_out Tensor self:t min:t?=none max:t?=none > out:t
clamp.out default self:t min:n?=none max:n?=none > out:t
clone.out default self:t memory_format:m?=none > out:t
constant_pad_nd.out default self:t pad:I value:n=0 > out:t
convolution.out default input:t weight:t bias:t? stride:I padding:I dilation:I transposed:b
  output_padding:I groups:i > out:t
convolution_backward.out default grad_output:t input:t weight:t bias_sizes:I? stride:I padding:I
  dilation:I transposed:b output_padding:I groups:i output_mask:B > out0:t out1:t out2:t
copy.out default self:t src:t non_blocking:b=0 > out:t
copy_ default self:t! src:t non_blocking:b=0
cos.out default self:t > out:t
cosh.out default self:t > out:t
cumsum.out default self:t dim:i dtype:d?=none > out:t
detach_copy.out default self:t > out:t
diagonal_copy.out default self:t offset:i=0 dim1:i=0 dim2:i=1 > out:t
dim_order_ops::_clone_dim_order.out default self:t non_blocking:b=0 dim_order:I?=none > out:t
dim_order_ops::_empty_dim_order.out default size:I dim_order:I?=none > out:t
dim_order_ops::_to_dim_order_copy.out default self:t non_blocking:b=0 dim_order:I?=none > out:t
div.Scalar_mode_out Scalar_mode self:t other:n rounding_mode:s? > out:t
div.Scalar_out Scalar self:t other:n > out:t
div.out Tensor self:t other:t > out:t
div.out_mode Tensor_mode self:t other:t rounding_mode:s? > out:t
elu.out default self:t alpha:n=1 scale:n=1 input_scale:n=1 > out:t
embedding.out default weight:t indices:t padding_idx:i=-1 scale_grad_by_freq:b=0 sparse:b=0 >
  out:t
empty.out memory_format size:I memory_format:m?=none > out:t
eq.Scalar_out Scalar self:t other:n > out:t
eq.Tensor_out Tensor self:t other:t > out:t
erf.out default self:t > out:t
et_copy::_d2h_copy.out default self:t > out:t
et_copy::_h2d_copy.out default self:t > out:t
executorch_prim::add.Scalar Scalar a:n b:n > out:n
executorch_prim::ceil.Scalar Scalar a:n > out:n
executorch_prim::eq.Scalar Scalar a:n b:n > out:b
executorch_prim::et_copy_index.tensor tensor copy_to:t! copy_from:t index:i
executorch_prim::et_view.default default self:t size:I > out:t
executorch_prim::floordiv.Scalar Scalar a:n b:n > out:n
executorch_prim::floordiv.int int a:i b:i > out:i
executorch_prim::ge.Scalar Scalar a:n b:n > out:b
executorch_prim::gt.Scalar Scalar a:n b:n > out:b
executorch_prim::le.Scalar Scalar a:n b:n > out:b
executorch_prim::lt.Scalar Scalar a:n b:n > out:b
executorch_prim::mod.Scalar Scalar a:n b:n > out:n
executorch_prim::mod.int int a:i b:i > out:i
executorch_prim::mul.Scalar Scalar a:n b:n > out:n
executorch_prim::neg.Scalar Scalar a:n > out:n
executorch_prim::round.Scalar Scalar a:n > out:n
executorch_prim::sub.Scalar Scalar a:n b:n > out:n
executorch_prim::sym_float.Scalar Scalar a:n > out:n
executorch_prim::sym_int.Scalar Scalar a:n > out:n
executorch_prim::sym_ite.Scalar Scalar condition:b a:n b:n > out:n
executorch_prim::sym_max.Scalar Scalar a:n b:n > out:n
executorch_prim::sym_min.Scalar Scalar a:n b:n > out:n
executorch_prim::sym_not.Scalar Scalar a:b > out:b
executorch_prim::truediv.Scalar Scalar a:n b:n > out:n
executorch_prim::trunc.Scalar Scalar a:n > out:n
exp.out default self:t > out:t
expand_copy.out default self:t size:I implicit:b=0 > out:t
expm1.out default self:t > out:t
fill.Scalar_out Scalar self:t value:n > out:t
fill.Tensor_out Tensor self:t value:t > out:t
flip.out default self:t dims:I > out:t
floor.out default self:t > out:t
floor_divide.out default self:t other:t > out:t
fmod.Scalar_out Scalar self:t other:n > out:t
fmod.Tensor_out Tensor self:t other:t > out:t
full.out default size:I fill_value:n > out:t
full_like.out default self:t fill_value:n memory_format:m?=none > out:t
gather.out default self:t dim:i index:t sparse_grad:b=0 > out:t
ge.Scalar_out Scalar self:t other:n > out:t
ge.Tensor_out Tensor self:t other:t > out:t
gelu.out default self:t approximate:s=none > out:t
glu.out default self:t dim:i=-1 > out:t
grid_sampler_2d.out default input:t grid:t interpolation_mode:i padding_mode:i align_corners:b >
  out:t
gt.Scalar_out Scalar self:t other:n > out:t
gt.Tensor_out Tensor self:t other:t > out:t
hardtanh.out default self:t min_val:n=-1 max_val:n=1 > out:t
index.Tensor_out Tensor self:t indices:T? > out:t
index_put.out default self:t indices:T? values:t accumulate:b=0 > out:t
index_put_ default self:t! indices:T? values:t accumulate:b=0
index_select.out default self:t dim:i index:t > out:t
isinf.out default self:t > out:t
isnan.out default self:t > out:t
le.Scalar_out Scalar self:t other:n > out:t
le.Tensor_out Tensor self:t other:t > out:t
leaky_relu.out default self:t negative_slope:n=0.01 > out:t
lift_fresh_copy.out default self:t > out:t
linear.out default input:t weight:t bias:t?=none > out:t
log.out default self:t > out:t
log10.out default self:t > out:t
log1p.out default self:t > out:t
log2.out default self:t > out:t
logical_and.out default self:t other:t > out:t
logical_not.out default self:t > out:t
logical_or.out default self:t other:t > out:t
logical_xor.out default self:t other:t > out:t
logit.out default self:t eps:f?=none > out:t
lt.Scalar_out Scalar self:t other:n > out:t
lt.Tensor_out Tensor self:t other:t > out:t
masked_fill.Scalar_out Scalar self:t mask:t value:n > out:t
masked_scatter.out default self:t mask:t source:t > out:t
masked_select.out default self:t mask:t > out:t
max.dim_max dim self:t dim:i keepdim:b=0 > max:t max_values:t
max.unary_out default self:t > out:t
max_pool2d_with_indices.out default self:t kernel_size:I stride:I=[] padding:I=[0,0]
  dilation:I=[1,1] ceil_mode:b=0 > out:t indices:t
max_pool2d_with_indices_backward.grad_input default grad_output:t self:t kernel_size:I stride:I
  padding:I dilation:I ceil_mode:b indices:t > grad_input:t
maximum.out default self:t other:t > out:t
mean.dtype_out default self:t dtype:d?=none > out:t
mean.out dim self:t dim:I? keepdim:b=0 dtype:d?=none > out:t
min.dim_min dim self:t dim:i keepdim:b=0 > min:t min_indices:t
min.unary_out default self:t > out:t
minimum.out default self:t other:t > out:t
mm.out default self:t mat2:t > out:t
mul.Scalar_out Scalar self:t other:n > out:t
mul.out Tensor self:t other:t > out:t
narrow_copy.out default self:t dim:i start:i length:i > out:t
native_dropout.out default input:t p:f train:b? > out0:t out1:t
native_group_norm.out default input:t weight:t? bias:t? N:i C:i HxW:i group:i eps:f > out0:t
  out1:t out2:t
native_layer_norm.out default input:t normalized_shape:I weight:t? bias:t? eps:f > out0:t out1:t
  out2:t
ne.Scalar_out Scalar self:t other:n > out:t
ne.Tensor_out Tensor self:t other:t > out:t
neg.out default self:t > out:t
nonzero.out default self:t > out:t
ones.out default size:I > out:t
permute_copy.out default self:t dims:I > out:t
pixel_shuffle.out default self:t upscale_factor:i > out:t
pixel_unshuffle.out default self:t downscale_factor:i > out:t
pow.Scalar_out Scalar self:n exponent:t > out:t
pow.Tensor_Scalar_out Tensor_Scalar self:t exponent:n > out:t
pow.Tensor_Tensor_out Tensor_Tensor self:t exponent:t > out:t
prod.int_out dim_int self:t dim:i keepdim:b=0 dtype:d?=none > out:t
prod.out default self:t dtype:d?=none > out:t
quantized_decomposed::add.out default a:t a_scale:f a_zero_point:i a_quant_min:i a_quant_max:i b:t
  b_scale:f b_zero_point:i b_quant_min:i b_quant_max:i out_scale:f out_zero_point:i
  out_quant_min:i out_quant_max:i > out:t
quantized_decomposed::choose_qparams.Tensor_out Tensor input:t quant_min:i quant_max:i eps:f
  dtype:d > scale_out:t zero_point_out:t
quantized_decomposed::choose_qparams_per_token_asymmetric.out default input:t dtype:d >
  scale_out:t zero_point_out:t
quantized_decomposed::dequantize_per_channel.out default input:t scales:t zero_points:t? axis:i
  quant_min:i quant_max:i dtype:d out_dtype:d?=none > out:t
quantized_decomposed::dequantize_per_tensor.Tensor_out Tensor input:t scale:t zero_point:t
  quant_min:i quant_max:i dtype:d out_dtype:d?=none > out:t
quantized_decomposed::dequantize_per_tensor.out default input:t scale:f zero_point:i quant_min:i
  quant_max:i dtype:d out_dtype:d?=none > out:t
quantized_decomposed::dequantize_per_token.out default input:t scales:t zero_points:t quant_min:i
  quant_max:i dtype:d output_dtype:d > out:t
quantized_decomposed::embedding_2bit.dtype_out dtype weight:t weight_scales:t
  weight_zero_points:t? weight_quant_min:i weight_quant_max:i indices:t dtype:d?=none > out:t
quantized_decomposed::embedding_2bit.out default weight:t weight_scales:t weight_zero_points:t?
  weight_quant_min:i weight_quant_max:i indices:t > out:t
quantized_decomposed::embedding_4bit.dtype_out dtype weight:t weight_scales:t
  weight_zero_points:t? weight_quant_min:i weight_quant_max:i indices:t dtype:d?=none > out:t
quantized_decomposed::embedding_4bit.out default weight:t weight_scales:t weight_zero_points:t?
  weight_quant_min:i weight_quant_max:i indices:t > out:t
quantized_decomposed::embedding_byte.dtype_out dtype weight:t weight_scales:t
  weight_zero_points:t? weight_quant_min:i weight_quant_max:i indices:t dtype:d?=none > out:t
quantized_decomposed::embedding_byte.out default weight:t weight_scales:t weight_zero_points:t?
  weight_quant_min:i weight_quant_max:i indices:t > out:t
quantized_decomposed::mixed_linear.out default input:t weight:t weight_scales:t
  weight_zero_points:t? dtype:d?=none > out:t
quantized_decomposed::mixed_mm.out default input:t weight:t weight_scales:t weight_zero_points:t?
  > out:t
quantized_decomposed::quantize_per_channel.out default input:t scales:t zero_points:t axis:i
  quant_min:i quant_max:i dtype:d > out:t
quantized_decomposed::quantize_per_tensor.Tensor_out Tensor input:t scale:t zero_point:t
  quant_min:i quant_max:i dtype:d > out:t
quantized_decomposed::quantize_per_tensor.out default input:t scale:f zero_point:i quant_min:i
  quant_max:i dtype:d > out:t
quantized_decomposed::quantize_per_token.out default input:t scales:t zero_points:t quant_min:i
  quant_max:i dtype:d > out:t
rand.out default size:I > out:t
randn.out default size:I > out:t
reciprocal.out default self:t > out:t
reflection_pad1d.out default self:t padding:I > out:t
reflection_pad2d.out default self:t padding:I > out:t
reflection_pad3d.out default self:t padding:I > out:t
relu.out default self:t > out:t
remainder.Scalar_out Scalar self:t other:n > out:t
remainder.Tensor_out Tensor self:t other:t > out:t
repeat.out default self:t repeats:I > out:t
repeat_interleave.Tensor_out Tensor repeats:t output_size:i?=none > out:t
replication_pad1d.out default self:t padding:I > out:t
replication_pad2d.out default self:t padding:I > out:t
replication_pad3d.out default self:t padding:I > out:t
roll.out default self:t shifts:I dims:I=[] > out:t
round.out default self:t > out:t
rsqrt.out default self:t > out:t
rsub.Scalar_out Scalar self:t other:n alpha:n=1 > out:t
scalar_tensor.out default s:n > out:t
scatter.src_out src self:t dim:i index:t src:t > out:t
scatter.value_out value self:t dim:i index:t value:n > out:t
scatter_add.out default self:t dim:i index:t src:t > out:t
select_copy.int_out int self:t dim:i index:i > out:t
select_scatter.out default self:t src:t dim:i index:i > out:t
sigmoid.out default self:t > out:t
sign.out default self:t > out:t
sin.out default self:t > out:t
sinh.out default self:t > out:t
slice_copy.Tensor_out Tensor self:t dim:i=0 start:i?=none end:i?=none step:i=1 > out:t
slice_scatter.out default self:t src:t dim:i=0 start:i?=none end:i?=none step:i=1 > out:t
split_copy.Tensor_out Tensor self:t split_size:i dim:i=0 > out:T
split_with_sizes_copy.out default self:t split_sizes:I dim:i=0 > out:T
sqrt.out default self:t > out:t
squeeze_copy.dim_out dim self:t dim:i > out:t
squeeze_copy.dims_out dims self:t dim:I > out:t
stack.out default tensors:T dim:i=0 > out:t
sub.Scalar_out Scalar self:t other:n alpha:n=1 > out:t
sub.out Tensor self:t other:t alpha:n=1 > out:t
sum.IntList_out dim_IntList self:t dim:I? keepdim:b=0 dtype:d?=none > out:t
sym_numel default self:t > out:i
sym_size.int int self:t dim:i > out:i
t_copy.out default self:t > out:t
tan.out default self:t > out:t
tanh.out default self:t > out:t
topk.values default self:t k:i dim:i=-1 largest:b=1 sorted:b=1 > values:t indices:t
transpose_copy.int_out int self:t dim0:i dim1:i > out:t
tril.out default self:t diagonal:i=0 > out:t
trunc.out default self:t > out:t
unbind_copy.int_out int self:t dim:i=0 > out:T
unfold_copy.out default self:t dimension:i size:i step:i > out:t
unsqueeze_copy.out default self:t dim:i > out:t
upsample_bilinear2d.vec_out vec input:t output_size:I? align_corners:b scale_factors:F? > out:t
upsample_nearest2d.vec_out vec input:t output_size:I? scale_factors:F? > out:t
var.correction_out correction self:t dim:I?=none correction:n?=none keepdim:b=0 > out:t
var.out dim self:t dim:I? unbiased:b=1 keepdim:b=0 > out:t
var_mean.correction_out correction self:t dim:I?=none correction:n?=none keepdim:b=0 > out0:t
  out1:t
view_as_real_copy.out default self:t > out:t
view_copy.out default self:t size:I > out:t
where.self_out self condition:t self:t other:t > out:t
zeros.out default size:I > out:t
)";
// clang-format on

}  // namespace trocar::executorch
