#include "cmsis_nn.h"
#include "cmsis_pool.h"

/* One for each of
   THE_KERNEL            | THE_FUNCTION
   cmsis_average_pool_s8 | arm_avgpool_s8
   cmsis_max_pool_s8     | arm_max_pool_s8 */

CMSIS_NN THE_KERNEL(const cmsis_pool *k, const uint8_t *in, uint8_t *out, uint8_t *buffer)
{
    const cmsis_nn_context context = {buffer, k->buffer_bytes};
    return THE_FUNCTION(&context, &k->params, &k->in_dims, (const int8_t *)in, &k->window_dims,
                        &k->out_dims, (int8_t *)out);
}
