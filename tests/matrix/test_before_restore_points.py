from tests.matrix.batch import Batch, cases_of
from tests.matrix.dimensions import Case


@cases_of("before_restore_points")
async def test_an_order_ends_as_the_failure_table_says(case: Case, batch: Batch) -> None:
    await batch.result(case)
