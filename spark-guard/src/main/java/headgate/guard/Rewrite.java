package headgate.guard;

import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** A partial function for Scala's transformations of plans, of a Java function that gives the same plan where nothing changes. */
final class Rewrite extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {

  private final UnaryOperator<LogicalPlan> change;

  private Rewrite(UnaryOperator<LogicalPlan> change) {
    this.change = change;
  }

  /** The plan with each of its nodes, from the top, as the function gives it. */
  static LogicalPlan down(LogicalPlan plan, UnaryOperator<LogicalPlan> change) {
    return plan.resolveOperatorsDown(new Rewrite(change));
  }

  @Override
  public boolean isDefinedAt(LogicalPlan plan) {
    return change.apply(plan) != plan;
  }

  @Override
  public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
    LogicalPlan changed = change.apply(plan);
    if (changed == plan) return otherwise.apply(plan);
    @SuppressWarnings("unchecked") // a plan gives a plan
    B found = (B) changed;
    return found;
  }
}
