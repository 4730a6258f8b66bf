"""The tables of the documentation are those of the kept results; all contests are listed."""

import pytest

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")

from bench.__main__ import main
from bench.contests import CONTESTS
from bench.harness.results import PAGES, shown, tables, written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_the_kept_results(page):
    text = page.read_text()
    assert written(text, tables()) == text, "python -m bench tables writes it"


def test_every_kept_table_is_shown_and_of_a_contest():
    found = [mark for page in PAGES for mark in shown(page.read_text())]
    assert sorted(found) == sorted(tables())
    assert {contest for contest, _ in found} <= CONTESTS.keys()


def test_the_list_names_every_contest(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in CONTESTS)
