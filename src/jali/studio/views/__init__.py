"""The views of the studio, in the order of a person's way; a step appears on the page when its view stands here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jali.studio.views import ask, data, decide, explore, hierarchies, promises
from jali.studio.views.view import View

if TYPE_CHECKING:
    from jali.studio.worker import Lane, Task

VIEWS: tuple[View, ...] = (data.VIEW, hierarchies.VIEW, promises.VIEW, explore.VIEW, ask.VIEW, decide.VIEW)
BY_NAME = {view.name: view for view in VIEWS}
TASKS: dict[str, Task] = {name: task for view in VIEWS for name, (_, task) in view.tasks.items()}
LANES: dict[str, Lane] = {name: lane for view in VIEWS for name, (lane, _) in view.tasks.items()}
