"""The executor that chooses for each step: local where its toolkit can be had, else the CUDA's image."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelmill import container, toolkit
from wheelmill.errors import MissingError

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.inputs import Inputs
    from wheelmill.local import Local
    from wheelmill.model import Step
    from wheelmill.steps import Clock, Executor, Site


@dataclass(frozen=True, slots=True)
class Auto:
    """Chooses, and says what it chose and why."""

    local: Local
    settings: container.Settings
    chosen: dict[str, Executor] = field(default_factory=dict)

    def pin(self, step: Step, site: Site, log: Path) -> Inputs:
        executor, reason = self._choose(step, site)
        self.chosen[step.wheel.id] = executor
        site.reporter.note(f"{step.wheel.id}: {reason}")
        return executor.pin(step, site, log)

    def wheel(self, step: Step, site: Site, inputs: Inputs, clock: Clock, log: Path) -> Path:
        return self.chosen[step.wheel.id].wheel(step, site, inputs, clock, log)

    def _choose(self, step: Step, site: Site) -> tuple[Executor, str]:
        if step.toolkit is None:
            return self.local, "built locally: it needs no CUDA toolkit"
        facts = site.facts.cuda[step.wheel.cuda]
        if facts.pypi is not None and self.local.provider != "system":
            return self.local, f"built locally: the toolkit of CUDA {facts.minor} comes from the package index"
        try:
            here = toolkit.system(facts.minor, same_major=site.same_major)
        except MissingError as missing:
            try:
                return container.start(self.settings, site.store), f"built in its image: {missing}"
            except MissingError as error:
                raise MissingError(
                    f"{missing}, and no container in its place: {error}", remedy=f"{missing.remedy}; or {error.remedy}"
                ) from error
        return self.local, f"built locally: CUDA {here.version} is in {here.home}"
