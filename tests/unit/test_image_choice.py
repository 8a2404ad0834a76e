"""Which image a step gets: what is here before what is made, its own CUDA before another minor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from wheelmill import engine, image_build, image_choice, report
from wheelmill.errors import MissingError
from wheelmill.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wheelmill.facts import Facts
    from wheelmill.images import Base
    from wheelmill.model import Plan, Step


@pytest.fixture
def choose(
    tmp_path: Path, known: Facts, planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[str, list[str]]]:
    """Chooses for a step of `cuda` beside the images that are `here`, with registries that do not answer."""

    def chooser(
        cuda: str, *here: str, base: Base | None = None, same_major: bool = True, registry: bool = False
    ) -> tuple[str, list[str]]:
        made: list[str] = []

        def ensure(_client: object, _pins: object, image: Any, *_: object) -> bool:
            if image.base == "manylinux" and not registry:
                raise engine.explain_pull(image.base_image, "dial tcp: no such host")
            made.append(image.name)
            return True

        monkeypatch.setattr(image_build, "ensure", ensure)
        step: Step = planned(f"torch: '>=2.4'\ncuda: [{cuda}]\n").steps[0]
        client: Any = SimpleNamespace(images=SimpleNamespace(list=lambda: [SimpleNamespace(tags=list(here))]))
        site: Any = SimpleNamespace(
            facts=known, same_major=same_major, store=Store(tmp_path / "store"), reporter=report.Plain()
        )
        return image_choice.choose(client, base, image_build.Site(), step, site), made

    return chooser


def test_the_image_of_its_own_cuda_goes_first(choose: Callable[..., tuple[str, list[str]]]) -> None:
    here = ("wheelmill/cu121:manylinux", "wheelmill/cu124:debian", "wheelmill/cu124:manylinux")
    assert choose("cu124", *here) == ("wheelmill/cu124:manylinux", [])
    assert choose("cu124", *here, base="debian") == ("wheelmill/cu124:debian", [])
    assert choose("cu126", *here) == ("wheelmill/cu124:manylinux", [])
    assert choose("cpu", *here) == ("wheelmill/cu124:manylinux", [])


def test_one_that_is_not_here_is_made(choose: Callable[..., tuple[str, list[str]]]) -> None:
    assert choose("cu121", registry=True) == ("wheelmill/cu121:manylinux", ["wheelmill/cu121:manylinux"])


def test_where_no_registry_answers_debian_serves(
    choose: Callable[..., tuple[str, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert choose("cu121") == ("wheelmill/cu124:debian", ["wheelmill/cu124:debian"])
    assert "its registry cannot be reached" in capsys.readouterr().err
    assert choose("cu118")[0] == "wheelmill/cu118:debian"


def test_another_minor_only_where_it_is_allowed(choose: Callable[..., tuple[str, list[str]]]) -> None:
    with pytest.raises(MissingError, match="no other CUDA may build it") as caught:
        choose("cu121", "wheelmill/cu124:debian", same_major=False)
    assert "toolkit: {minor: same-major}" in caught.value.remedy


def test_a_base_that_cannot_be_had(choose: Callable[..., tuple[str, list[str]]]) -> None:
    with pytest.raises(MissingError, match="no manylinux image for cu121 is here, and none can be made") as caught:
        choose("cu121", "wheelmill/cu124:debian", base="manylinux")
    assert "check the network" in caught.value.remedy
