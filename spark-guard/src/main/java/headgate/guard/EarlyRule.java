package headgate.guard;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/** Looks at every plan before anything in it is resolved, also at those that no parser made. */
final class EarlyRule extends Rule<LogicalPlan> {

  private final Setup setup;

  EarlyRule(Setup setup) {
    this.setup = setup;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    new Walk(setup).check(plan, Walk.Stage.EARLY);
    setup.checkSettings();
    setup.checkCatalog();
    return plan;
  }
}
