package headgate.guard;

import org.apache.spark.sql.catalyst.expressions.CurrentUser;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Answers current_user(), session_user() and user() with the member that the session acts for; Spark's is the server's own. */
final class UserRule extends Rule<LogicalPlan> {

  /** The setting in which a session has the member's mail address. No SQL can set it. */
  static final String KEY = "headgate.user";

  private final Setup setup;

  UserRule(Setup setup) {
    this.setup = setup;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    String user = setup.user();
    // Without a member the expression stays, and is refused.
    return user.isEmpty() ? plan : plan.transformAllExpressionsWithSubqueries(new Named(Literal$.MODULE$.apply(user)));
  }

  private static final class Named extends AbstractPartialFunction<Expression, Expression> {
    private final Expression user;

    Named(Expression user) {
      this.user = user;
    }

    @Override
    public boolean isDefinedAt(Expression expression) {
      return expression instanceof CurrentUser;
    }

    @Override
    public <A extends Expression, B> B applyOrElse(A expression, Function1<A, B> otherwise) {
      if (!isDefinedAt(expression)) return otherwise.apply(expression);
      @SuppressWarnings("unchecked") // an expression gives an expression
      B found = (B) user;
      return found;
    }
  }
}
