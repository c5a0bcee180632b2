import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """What is derived from read-only data goes to a folder of this test run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MILEGPO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
