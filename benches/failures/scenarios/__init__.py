"""The twenty failures, in the order of the page."""

from benches.failures.scenarios.producing import PRODUCING
from benches.failures.scenarios.reading import READING
from benches.failures.scenarios.stage import Observed, Scenario, Stage, Wish
from benches.failures.scenarios.transacting import TRANSACTING

__all__ = ["SCENARIOS", "Observed", "Scenario", "Stage", "Wish"]

SCENARIOS = {scenario.name: scenario for scenario in (*PRODUCING, *TRANSACTING, *READING)}
