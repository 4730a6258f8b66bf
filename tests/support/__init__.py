"""What several test modules need, imported as `support.x` and under no other name.

Judges that share no code with what they judge: `oracle`, `brute_force`, `arena_interpreter`,
`sliding_kernels`; of training, `gradients` by central differences and the `wide_reference` in
64 bits.

Problems: `problems` written down, drawn by Hypothesis or cut from a rectangle, `banded` as
networks that run row by row make them, `executorch_specs` as ExecuTorch states them.

Models and programs: `tiny_graphs`, `tiny_onnx`, `tiny_tflite`, `tiny_chains`,
`tiny_loops`, `tiny_signals`, `tflite_operator`, `tflite_layers`,
`tflite_networks`, `quantised_chain`, `quantised_onnx`, `command_models`, `small_networks`,
`small_systems`, `operator_models`, `sixteen_bits`, `onnx_cases` of the onnx package,
`tiny_programs`,
`banded_programs`, `row_programs`, `coded_programs`, `detectors` that count their boxes,
`caches` and `decoders` with states that grow, `cache_rows` of 8 bits, weights of `short_floats`,
`two_memories`, `training_programs` that are also run here; for a range of sizes `sized_graphs`,
`sized_programs`, and `ranged_programs` made of programs for fixed ones.

Programs and files that are wrong: `one_step`, `hostile_edits`, `hostile_steps`,
`edited_programs`, `damage`. `flip_files` damages the `hostile_files`, with the `hostile_models`
among them, and gives them to every command, each in a process of its own (`forked`).

Proof that lasts: `skips` tells why tests did not run, `byte_figures` are the arenas that must
not grow.

Fuzzers: `fuzz_seeds` are what they begin with, `fuzz_importers` is the one for models and plans,
`fuzz_corpus` what they came by. `range_fuzz` runs `random_networks` for ranges of sizes, which are
`random_graphs` of operators; `c_fuzz` runs others in compiled C.

Running: `running` our session beside the reference, `banding` networks in bands, `trading` steps
that policies rewrote, `c_library` built and installed (`reuse_objects` copies what the package
has), `exported_c` compiled here, with CMSIS-NN or its double, `shared_material` that may lie
beside the checkout, the `contests` of bench, `wide_registers` of AVX-512 in use, `shared_head` of
interpreters of TensorFlow Lite Micro.

Beside them: `command` to call as a user types it, `documentation` with the blocks of the pages,
`entry_points` of the checkout, `archives` unpacked.
"""
