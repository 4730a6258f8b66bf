"""`arenite generate`: a text continued by a decoder, token by token."""

import resource
from collections.abc import Mapping
from pathlib import Path

import click
from rich.console import Console

from arenite.cli.console.results import Results
from arenite.cli.console.streams import text_beside
from arenite.cli.options.common import json_option, threads_option
from arenite.cli.options.model import cache_option
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.types import RANGED_DIM, Parsed, number_type
from arenite.cli.render.facts import facts
from arenite.pipeline.base import both, grouped
from arenite.pipeline.generation import Generated, Generator, Sampling
from arenite.runtime.rewrites import Caches

INTERRUPTED = 130
_KIBIBYTE = 1024
_WORDS: Mapping[str, str] = {
    "": "interrupted",
    "max_tokens": "as many tokens as asked for",
    "stop_token": "a token that ends the text",
    "stop": "a text to stop at",
    "full": "the model takes no more tokens",
}


def _tokens(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError:
        raise ValueError(f"{text!r} is not numbers of tokens, such as 12,5,40") from None


@click.command(
    cls=SectionedCommand,
    sections={
        "Choice of tokens": ("temperature", "top_k", "top_p", "seed"),
        "End of the text": ("max_tokens", "stop", "stop_tokens"),
        "Reading the model": ("length", "rotates", "chunk", "cache", "dims"),
    },
    rare=(),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--prompt", metavar="TEXT", help="Text to continue.")
@click.option(
    "--tokens", type=Parsed("tokens", _tokens), metavar="N,N...",
    help="Tokens to continue, in the place of a text: no tokenizer is needed.",
)  # fmt: skip
@click.option(
    "--tokenizer", type=click.Path(path_type=Path), metavar="FILE",
    help="A tokenizer.json of the library 'tokenizers'.  [default: tokenizer.json beside MODEL]",
)  # fmt: skip
@click.option(
    "--temperature", type=click.FloatRange(min=0), default=0.0, show_default=True, metavar="X",
    help="Divide logits by this before one token is drawn; 0 takes the most likely token.",
)  # fmt: skip
@click.option(
    "--top-k", type=number_type(0), default=0, metavar="N",
    help="Draw among the N most likely tokens.  [default: all]",
)  # fmt: skip
@click.option(
    "--top-p", type=click.FloatRange(min=0, max=1, min_open=True), default=1.0, show_default=True,
    metavar="X", help="Draw among the fewest likely tokens whose probabilities reach X.",
)  # fmt: skip
@click.option(
    "--seed", type=number_type(0), default=0, show_default=True, metavar="N",
    help="Seed of the draws.",
)  # fmt: skip
@click.option(
    "--max-tokens", type=number_type(0), default=128, show_default=True, metavar="N",
    help="Most tokens to make.",
)  # fmt: skip
@click.option("--stop", multiple=True, metavar="TEXT", help="End before this text. Repeatable.")
@click.option(
    "--stop-token", "stop_tokens", type=number_type(0), multiple=True, metavar="N",
    help="End at this token. Repeatable.  [default: eos_token_id of generation_config.json or "
    "config.json beside MODEL]",
)  # fmt: skip
@click.option(
    "--length", type=number_type(2), default=1024, show_default=True, metavar="N",
    help="Most tokens of the text, prompt and all, of an ONNX model.",
)  # fmt: skip
@click.option(
    "--rotate", "rotates", is_flag=True,
    help="Go on behind --length: each token sees that many, and the oldest leave the cache.",
)  # fmt: skip
@click.option(
    "--chunk", type=number_type(1), default=16, show_default=True, metavar="N",
    help="Most tokens of a run over the prompt, of an ONNX model: more are quicker and take a "
    "larger arena.",
)  # fmt: skip
@cache_option
@click.option(
    "--dim", "dims", type=RANGED_DIM, multiple=True, metavar="NAME=N|LOW..HIGH[+]",
    help="Value or range of a free dimension whose name does not tell its meaning. Repeatable.",
)  # fmt: skip
@threads_option("Number of threads.")
@json_option
def generate(
    model: Path,
    prompt: str | None,
    tokens: tuple[int, ...] | None,
    tokenizer: Path | None,
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
    max_tokens: int,
    stop: tuple[str, ...],
    stop_tokens: tuple[int, ...],
    length: int,
    rotates: bool,
    chunk: int,
    cache: Caches | None,
    dims: tuple[tuple[str, str], ...],
    threads: int,
    as_json: bool,
) -> None:
    """Continue a text by MODEL: an ONNX decoder, or the .arena file of one.

    The text appears as it is made; tokens a second and memory are stated on standard error.
    Without a tokenizer the tokens are printed. Ctrl-C ends the text.
    """
    if (prompt is None) == (tokens is None):
        raise click.UsageError("give either --prompt or --tokens")
    given = tokens if prompt is None else prompt
    assert given is not None
    result = Generated()
    with Generator(
        model,
        tokenizer=tokenizer,
        length=length,
        rotates=rotates,
        chunk=chunk,
        cache=cache,
        dims=dict(dims),
        threads=threads,
    ) as generator:
        has_text = generator.tokenizer is not None
        pieces = generator.stream(
            given, max_tokens=max_tokens, sampling=Sampling(temperature, top_k, top_p, seed),
            stop=stop, stop_tokens=stop_tokens or None, result=result,
        )  # fmt: skip
        try:
            for piece in pieces:
                if not as_json:
                    click.echo(piece.text if has_text else f"{piece.token} ", nl=False)
        except KeyboardInterrupt:
            result.stopped = ""
        held = generator.session.memory().total
        arena = generator.session.arena_bytes
    if not as_json:
        click.echo()
    _show(model, result, arena, held, as_json=as_json)
    if not result.stopped:
        click.get_current_context().exit(INTERRUPTED)


def _show(model: Path, result: Generated, arena: int, held: int, *, as_json: bool) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTE

    def text(_: Console) -> None:
        reused = f", {grouped(result.reused_tokens)} in the cache" if result.reused_tokens else ""
        rows = [
            (
                "prompt",
                f"{grouped(result.prompt_tokens)} tokens{reused}: "
                f"{result.prompt_tokens_per_s:,.1f} tokens/s",
            ),
            ("made", f"{grouped(len(result.tokens))} tokens: {result.tokens_per_s:,.1f} tokens/s"),
            ("ended", _WORDS[result.stopped]),
            ("arena", both(arena)),
            ("session", both(held)),
            ("peak", f"{both(peak)} of the process"),
        ]
        text_beside().print(facts(rows))

    Results(as_json=as_json).show(
        {
            "model": str(model),
            "text": result.text,
            "tokens": result.tokens,
            "stopped": result.stopped or "interrupted",
            "prompt_tokens": result.prompt_tokens,
            "prompt_tokens_per_s": result.prompt_tokens_per_s,
            "tokens_per_s": result.tokens_per_s,
            "arena_bytes": arena,
            "session_bytes": held,
            "peak_bytes": peak,
        },
        text,
    )
