"""What is recorded: every ending of each workflow, and every wait that one may be stopped at."""

from tests.replay.guard_scenes import GUARD_SCENES
from tests.replay.money_scenes import MONEY_SCENES
from tests.replay.operator_scenes import OPERATOR_SCENES
from tests.replay.order_scenes import ORDER_SCENES

#: What is played in one shop. A guard looks at all orders of one, and would start again those that are cut short.
SHOPS = (ORDER_SCENES | OPERATOR_SCENES | MONEY_SCENES, GUARD_SCENES)

SCENES = ORDER_SCENES | OPERATOR_SCENES | MONEY_SCENES | GUARD_SCENES
