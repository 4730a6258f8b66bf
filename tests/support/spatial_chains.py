"""Random networks of steps over images, as the text of ONNX models."""

from hypothesis import strategies as st


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Draw a network of spatial steps with windows of every kind, some with a way around."""
    rows, columns = draw(st.integers(1, 18)), draw(st.integers(1, 9))
    channels, steps, weights = 4, [], []
    last, count = "x", draw(st.integers(1, 5))
    shape = [rows, columns]
    for number in range(count):
        kind = draw(st.sampled_from(["conv", "depthwise", "pool", "add", "relu", "resize"]))
        name = f"t{number}"
        if kind in ("conv", "depthwise", "pool"):
            kernel = [draw(st.integers(1, 3)) for _ in range(2)]
            strides = [draw(st.integers(1, 2)) for _ in range(2)]
            dilations = [draw(st.integers(1, 2)) for _ in range(2)] if kind != "pool" else [1, 1]
            pads = [draw(st.integers(0, k - 1)) for k in kernel * 2]
            made = [
                (shape[a] + pads[a] + pads[a + 2] - dilations[a] * (kernel[a] - 1) - 1)
                // strides[a]
                + 1
                for a in range(2)
            ]
            if min(made) < 1:
                continue
            shape = made
            given = f"strides={strides}, pads={pads}, dilations={dilations}"
            if kind == "pool":
                steps.append(f"{name} = MaxPool<{given}, kernel_shape={kernel}>({last})")
            else:
                group = channels if kind == "depthwise" else 1
                weights.append(
                    f"float[{channels},{channels // group},{kernel[0]},{kernel[1]}] w{number}"
                )
                steps.append(f"{name} = Conv<{given}, group={group}>({last}, w{number})")
        elif kind == "add":
            steps.append(f"r{number} = Relu({last}) {name} = Add(r{number}, {last})")
        elif kind == "relu":
            steps.append(f"{name} = Relu({last})")
        else:
            weights.append(f"float[4] s{number} = {{1,1,2,2}}")
            steps.append(
                f'{name} = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", '
                f'nearest_mode="floor">({last}, , s{number})'
            )
            shape = [2 * length for length in shape]
        last = name
    steps.append(f"y = Abs({last})")
    return (
        f"(float[1,{channels},{rows},{columns}] x) => (y) <{', '.join(weights)}> "
        f"{{ {' '.join(steps)} }}"
    ).replace("<>", "")
