package headgate.guard;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Looks at every resolved plan: which tables, of which catalog, which functions. */
final class CheckRule extends AbstractFunction1<LogicalPlan, BoxedUnit> {

  private final Setup setup;

  CheckRule(Setup setup) {
    this.setup = setup;
  }

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    new Walk(setup).check(plan, Walk.Stage.RESOLVED);
    return BoxedUnit.UNIT;
  }
}
