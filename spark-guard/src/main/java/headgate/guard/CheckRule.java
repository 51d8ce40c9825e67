package headgate.guard;

import org.apache.spark.sql.catalyst.plans.logical.Call;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.command.ExplainCommand;
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
    plan.foreach(this::explained);
    return BoxedUnit.UNIT;
  }

  /** EXPLAIN gives what goes wrong as rows, with all that it says; so it goes wrong here first, as the statement itself would. */
  private BoxedUnit explained(LogicalPlan plan) {
    // A procedure runs while it is analysed; EXPLAIN itself knows to leave that out.
    if (plan instanceof ExplainCommand explain && !(explain.logicalPlan() instanceof Call)) setup.plan(explain.logicalPlan());
    return BoxedUnit.UNIT;
  }
}
