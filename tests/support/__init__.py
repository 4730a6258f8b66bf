"""What several test modules need, imported as `support.x` and under no other name.

Judges that share no code with what they judge: `oracle`, `brute_force`, `optimal_clusters`,
`profiles`, `arena_interpreter`, `sliding_kernels`; of training, `gradients` by central
differences and the `wide_reference` in 64 bits.

Problems: `small_problems` written down, `problems` drawn by Hypothesis, `tilings` whose lowest
plan is known, `banded` as networks that run row by row make them, a `stub_strategy`,
`executorch_specs` as
ExecuTorch hands them over.

Models and programs: `steps`, `tiny_graphs`, `wide_graphs`, `tiny_onnx`, `tiny_tflite`,
`tiny_chains`, `tiny_variables`, `tiny_signals`, `sparse_constants`, `tflite_operator`,
`tflite_layers`, `tflite_networks`, `quantised_chain`, `quantised_onnx`, `command_models`,
`named_mobilenet`, `small_networks`, `operator_models`, `tiny_programs`, `banded_programs`,
`row_programs`, `coded_programs`, `two_memories`, `spatial_chains`, `training_programs`
that are also run here.

Programs and files that are wrong: `one_step`, `hostile_programs`, `hostile_edits`,
`hostile_steps`, `edited_programs`, `damage`. `flip_files` damages the `hostile_files`, with the
`hostile_models` among them, and gives them to every command, each in a process of its own
(`forked`).

Proof that lasts: `mutation` breaks the rules of a module, `writers` are the commands that write,
`skips` tells why tests did not run, `byte_figures` are the arenas that must not grow.

Fuzzers: `fuzz_seeds` are what they begin with, `fuzz_importers` is the one for models and plans,
`fuzz_corpus` what they came by.

Running: `running` our session beside the reference, `rows_beside_whole` steps in bands beside the
same steps whole, `banding` networks in bands, `trading` steps that policies rewrote, `unets` a
network with skips, `parts` a tensor in parts, `children` that are forked, `c_library` built and
installed, `exported_c` compiled here, with `cmsis_nn` or what stands in for it, `c_fuzz` as random
networks,
`shared_material` that may lie beside the checkout, the `contests` of bench, `wide_registers` of
AVX-512 in use.

Beside them: `command` to call as a user types it, `documentation` with the blocks of the pages,
`entry_points` with those that a checkout states.
"""
