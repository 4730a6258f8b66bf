"""`arenite generate`: text as it is made, and what it took."""

import pytest

from arenite import Generator
from support.decoders import DIMS, add_tokenizer, decoder_file


@pytest.fixture
def decoder(tmp_path):
    return decoder_file(tmp_path)


def test_text_goes_in_and_comes_out(decoder, run, run_json):
    add_tokenizer(decoder)
    with Generator(decoder) as generator:
        made = generator.generate("hello", max_tokens=12)
    arguments = ("generate", decoder, "--prompt", "hello", "--max-tokens", 12)
    code, out, err = run(*arguments)
    assert (code, out) == (0, made.text + "\n")
    for word in ("tokens/s", "as many tokens as asked for", "arena", "peak"):
        assert word in err
    said = run_json(*arguments)
    assert (said["text"], said["tokens"], said["stopped"]) == (
        made.text,
        made.tokens,
        "max_tokens",
    )


def test_the_command_takes_tokens_and_states_what_is_wrong(decoder, run):
    code, out, _ = run("generate", decoder, "--tokens", "1,5,7", "--max-tokens", 3)
    assert code == 0
    with Generator(decoder) as generator:
        assert out.split() == [*map(str, generator.generate([1, 5, 7], max_tokens=3).tokens)]
    assert run("generate", decoder)[0] == 2
    assert run("generate", decoder, "--tokens", "1,x")[0] == 2
    code, _, err = run("generate", decoder, "--prompt", "text")
    assert code == 1
    assert "needs a tokenizer" in err


def test_ctrl_c_keeps_what_was_written(decoder, run, monkeypatch):
    stream = Generator.stream

    def interrupted(self, *given, **options):
        for number, piece in enumerate(stream(self, *given, **options)):
            if number == 2:
                raise KeyboardInterrupt
            yield piece

    monkeypatch.setattr(Generator, "stream", interrupted)
    code, out, err = run("generate", decoder, "--tokens", "1,5,7")
    assert (code, len(out.split())) == (130, 2)
    assert "interrupted" in err


def test_a_cache_of_16_bits_takes_a_smaller_arena(decoder, run, run_json, tmp_path):
    arguments = ("generate", decoder, "--tokens", "1,5,7", "--max-tokens", 12)
    wide, narrow = run_json(*arguments), run_json(*arguments, "--cache", "fp16")
    assert narrow["arena_bytes"] < 0.7 * wide["arena_bytes"]
    given = [each for name, lengths in DIMS.items() for each in ("--dim", f"{name}={lengths}")]
    program = tmp_path / "decoder.arena"
    assert run("build", decoder, *given, "--cache", "fp16", "-o", program)[0] == 0
    assert run("verify", program)[0] == 0
    code, _, err = run("run", program, "--cache", "fp16")
    assert (code, "--cache" in err) == (2, True)


def test_the_program_of_a_decoder_is_valid(decoder, run, tmp_path):
    program = tmp_path / "decoder.arena"
    given = [each for name, lengths in DIMS.items() for each in ("--dim", f"{name}={lengths}")]
    assert run("build", decoder, *given, "-o", program)[0] == 0
    code, out, err = run("verify", program)
    assert code == 0, err
    assert "past_sequence_length=0..63+" in out
