"""Functions of a float as C expressions of x, alpha and beta."""

from collections.abc import Mapping
from typing import Final

from arenite.runtime.operators.elementwise import UnaryFunction

F = UnaryFunction

EXPRESSIONS: Final[Mapping[UnaryFunction, str]] = {
    F.CLAMP: "x < alpha ? alpha : x > beta ? beta : x",
    F.ABSOLUTE: "fabsf(x)",
    F.NEGATE: "-x",
    F.SQUARE: "x * x",
    F.SQUARE_ROOT: "sqrtf(x)",
    F.RECIPROCAL_SQUARE_ROOT: "1.0f / sqrtf(x)",
    F.RECIPROCAL: "1.0f / x",
    F.FLOOR: "floorf(x)",
    F.CEILING: "ceilf(x)",
    F.ROUND: "rintf(x)",
    F.SIGN: "(float)((x > 0.0f) - (x < 0.0f))",
    F.EXPONENTIAL: "expf(x)",
    F.LOGARITHM: "logf(x)",
    F.SINE: "sinf(x)",
    F.COSINE: "cosf(x)",
    F.HYPERBOLIC_TANGENT: "tanhf(x)",
    F.SIGMOID: "1.0f / (1.0f + expf(-x))",
    F.HARD_SIGMOID: "fmaxf(0.0f, fminf(1.0f, alpha * x + beta))",
    F.HARD_SWISH: "x * fmaxf(0.0f, fminf(6.0f, x + 3.0f)) / 6.0f",
    F.SWISH: "x / (1.0f + expf(-alpha * x))",
    F.ELU: "x > 0.0f ? x : alpha * expm1f(x)",
    F.CELU: "x > 0.0f ? x : alpha * expm1f(x / alpha)",
    F.SELU: "beta * (x > 0.0f ? x : alpha * expm1f(x))",
    F.LEAKY_RELU: "x >= 0.0f ? x : alpha * x",
    F.THRESHOLDED_RELU: "x > alpha ? x : 0.0f",
    F.SOFTPLUS: "fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)))",
    F.SOFTSIGN: "x / (1.0f + fabsf(x))",
    F.MISH: "x * tanhf(fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))))",
    F.ERF: "erff(x)",
    F.GELU: "0.5f * x * (1.0f + erff(x * 0.707106781f))",
    F.GELU_TANH: "0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)))",
}
"""What has none, truths and tests for NaN, is refused."""


def definition(function: UnaryFunction) -> tuple[str, str]:
    """Return the name of a function in C, and its definition."""
    name, expression = f"{function.value}_of", EXPRESSIONS[function]
    unused = [each for each in ("alpha", "beta") if each not in expression]
    body = "".join(f"    (void){each};\n" for each in unused)
    return name, (
        f"static float {name}(float x, float alpha, float beta)\n{{\n{body}"
        f"    return {expression};\n}}\n"
    )
