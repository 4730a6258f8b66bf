"""These tests take cross compilers and emulators; `make test-mcu` installs them."""

import os

import pytest

from bench.boards.board import BOARDS


@pytest.fixture(autouse=True, scope="session")
def _tools():
    if "ARENITE_MCU" not in os.environ:
        pytest.skip("needs cross compilers and emulated boards: run `make test-mcu`")


@pytest.fixture(params=BOARDS, ids=lambda board: f"{board.name}-{board.processor}")
def board(request):
    if missing := request.param.missing():
        pytest.skip(f"needs tools: {missing}")
    return request.param
