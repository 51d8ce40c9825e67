package headgate.guard;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Where a session asks for it, has each column of a query say in its metadata which columns of tables it is made of. */
final class OriginsRule extends Rule<LogicalPlan> {

  /** What the metadata of a column calls them: table, column, table, column and so on. */
  static final String KEY = "headgate.origins";

  /** More than these are not told at all. */
  private static final int MOST = 20_000;

  private final Setup setup;

  OriginsRule(Setup setup) {
    this.setup = setup;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    boolean isWhole = plan.resolved() && !(plan instanceof Command) && AnalysisContext.get().outerPlan().isEmpty();
    return isWhole && setup.tellsOrigins() ? told(plan) : plan;
  }

  private static LogicalPlan told(LogicalPlan plan) {
    Origins origins = new Origins(plan);
    List<NamedExpression> columns = new ArrayList<>();
    int count = 0;
    for (Attribute one : CollectionConverters.asJava(plan.output())) {
      List<String> from = new ArrayList<>();
      for (Origins.Column column : origins.of(one)) {
        from.add(column.table());
        from.add(column.name());
      }
      count += from.size() / 2;
      columns.add(marked(one, from));
    }
    // What is made of no table is left as it is: Spark analyses the values of parameters as a query of their own.
    return count == 0 || count > MOST ? plan : new Project(CollectionConverters.asScala(columns).toList(), plan);
  }

  private static NamedExpression marked(Attribute one, List<String> from) {
    Metadata told = new MetadataBuilder().withMetadata(one.metadata()).putStringArray(KEY, from.toArray(String[]::new)).build();
    return new Alias(
        one, one.name(), one.exprId(), one.qualifier(), Option.apply(told), CollectionConverters.asScala(List.<String>of()).toList());
  }
}
