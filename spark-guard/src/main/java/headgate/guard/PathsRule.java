package headgate.guard;

import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/** Makes NULL of the paths in tables about tables, whose other columns a member may read. */
final class PathsRule extends Rule<LogicalPlan> {

  private static final String PATH = "manifest_list";

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUpWithSubqueriesAndPruning(
        any -> true, plan.resolveOperatorsUpWithSubqueriesAndPruning$default$2(), new Masked());
  }

  private static final class Masked extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {

    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof DataSourceV2Relation relation
          && relation.table() instanceof SparkTable table
          && table.table() instanceof BaseMetadataTable
          && relation.output().exists(Masked::isPath);
    }

    @Override
    public <A1 extends LogicalPlan, B1> B1 applyOrElse(A1 plan, scala.Function1<A1, B1> otherwise) {
      if (!isDefinedAt(plan)) return otherwise.apply(plan);
      @SuppressWarnings("unchecked") // a plan gives a plan
      B1 masked = (B1) masked((DataSourceV2Relation) (LogicalPlan) plan);
      return masked;
    }

    /** The relation without the column, and above it one of the same name and id that holds nothing. */
    private static LogicalPlan masked(DataSourceV2Relation relation) {
      List<NamedExpression> columns = new ArrayList<>();
      List<AttributeReference> kept = new ArrayList<>();
      for (AttributeReference one : CollectionConverters.asJava(relation.output())) {
        columns.add(isPath(one) ? nothing(one) : one);
        if (!isPath(one)) kept.add(one);
      }
      return new Project(
          CollectionConverters.asScala(columns).toList(),
          relation.copy(
              relation.table(), CollectionConverters.asScala(kept).toList(), relation.catalog(), relation.identifier(),
              relation.options(), relation.timeTravelSpec()));
    }

    private static NamedExpression nothing(AttributeReference one) {
      return new Alias(
          new Literal(null, one.dataType()), one.name(), one.exprId(), one.qualifier(), Option.apply(one.metadata()),
          CollectionConverters.asScala(List.<String>of()).toList());
    }

    private static boolean isPath(AttributeReference one) {
      return one.name().equals(PATH);
    }
  }
}
