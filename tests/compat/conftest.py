"""A cache of their own for the tests of drop-in classes."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_of_tests(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARENITE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
