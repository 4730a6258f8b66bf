#include <arm_nnfunctions.h>

/* The working memory in the arena is that of one kind of processors. */
#if defined(ARM_MATH_MVEI)
#if !PLANNED_FOR_MVE
#error "CMSIS-NN is compiled for MVE: export the model with --extension mve"
#endif
#elif PLANNED_FOR_MVE
#error "the model was exported with --extension mve, and CMSIS-NN is compiled without"
#elif defined(ARM_MATH_DSP) && !PLANNED_FOR_DSP
#error "CMSIS-NN is compiled for DSP instructions: export the model with --extension dsp"
#endif
#if defined(CMSIS_NN_USE_SINGLE_ROUNDING)
#error "the model is rounded twice, and CMSIS-NN is compiled to round once"
#endif

/* Calls of CMSIS-NN are kept apart from what calls them, as kernels are. */
#if defined(__GNUC__)
#define CMSIS_NN static __attribute__((noinline)) arm_cmsis_nn_status
#else
#define CMSIS_NN static arm_cmsis_nn_status
#endif
