import json
from pathlib import Path

import pytest

from support.command import main
from support.tflite_networks import keyword
from support.tiny_chains import dense_chain

real = pytest.mark.usefixtures("interpreter")


@real
def test_export_writes_a_model_that_needs_less(chain: Path, capsys: pytest.CaptureFixture[str]):
    output, header = chain.with_name("planned.tflite"), chain.with_name("planned.h")
    command = ["export", str(chain), "--to", "tflm", "-o", str(output), "--header", str(header)]
    assert main([*command, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["head"] == {"stock": 512, "planned": 384}
    assert result["outputs_identical"] is True
    assert result["plan_used"] is True
    assert "CHAIN_HEAD_BYTES 384" in header.read_text()
    assert main(["tflm-arena", str(output), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["smallest"]["stock"] == result["smallest"]["planned"]


@real
def test_export_copies_the_model_where_the_stock_plan_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    model, output = tmp_path / "even.tflite", tmp_path / "planned.tflite"
    model.write_bytes(dense_chain((16, 16, 16)))
    assert main(["export", str(model), "--to", "tflm", "-o", str(output)]) == 0
    assert output.read_bytes() == model.read_bytes()
    assert "stock stays: the arena takes" in capsys.readouterr().out


@real
def test_tflm_arena_answers_for_people(chain: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["tflm-arena", str(chain)]) == 0
    text = capsys.readouterr().out
    assert "512 B -> 384 B, 25.0 % less" in text
    assert "identical bit for bit" in text
    assert text.index("tail: what stays") < text.index("kernels' own data") < text.index("total")


@real
def test_tflm_arena_says_what_the_tail_is_made_of(chain: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["tflm-arena", str(chain), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    for plan in ("stock", "planned"):
        parts = {name: size[plan] for name, size in result["tail_parts"].items()}
        assert sum(parts.values()) == result["tail"][plan]
        assert all(parts[name] > 0 for name in ("tensors", "operators", "kernels", "own"))
        assert parts["variables"] == 0
        assert result["head"][plan] + result["tail"][plan] == result["total"][plan]


@real
def test_variable_tensors_are_a_part_of_the_tail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    model = tmp_path / "keyword.tflite"
    model.write_bytes(keyword())
    assert main(["tflm-arena", str(model), "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)["tail_parts"]
    assert parts["variables"]["stock"] > 0


def test_tflm_arena_says_what_it_could_not_measure(
    chain: Path, capsys: pytest.CaptureFixture[str], without
):
    without("tflite_micro")
    assert main(["tflm-arena", str(chain)]) == 0
    text = capsys.readouterr().out
    assert "head, computed" in text
    assert "arenite[tflm]" in text
    assert main(["tflm-arena", str(chain), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["measured"], result["smallest"]) == (False, None)


def test_export_does_not_overwrite_the_model(chain: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["export", str(chain), "--to", "tflm", "-o", str(chain)]) == 1
    assert "choose another name" in capsys.readouterr().err


def test_export_does_not_write_header_and_model_to_one_file(chain: Path):
    output = str(chain.with_name("x"))
    command = ["export", str(chain), "--to", "tflm", "-o", output, "--header", output]
    assert main(command) == 2


def test_an_unknown_target_is_a_usage_error(chain: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["export", str(chain), "--to", "abacus", "-o", "x"]) == 2
    assert "tflm" in capsys.readouterr().err
