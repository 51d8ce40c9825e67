package headgate.guard;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RenameTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowTableProperties;
import org.apache.spark.sql.catalyst.plans.logical.views.ResolvedV2View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.jdk.javaapi.CollectionConverters;

/** Makes statements about a table show nothing of its internals, and completes the name that RENAME TO gives a table or view. */
final class TablesRule extends Rule<LogicalPlan> {

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return Rewrite.down(plan, TablesRule::changed);
  }

  private static LogicalPlan changed(LogicalPlan plan) {
    if (plan instanceof ShowCreateTable show && isWhole(show.child())) return show.copy(shown(show.child()), show.asSerde(), show.output());
    if (plan instanceof ShowTableProperties show && isWhole(show.table())) {
      return show.copy(shown(show.table()), show.propertyKey(), show.output());
    }
    if (plan instanceof DescribeRelation describe && describe.isExtended() && isWhole(describe.relation())) {
      return describe.copy(shown(describe.relation()), describe.partitionSpec(), true, describe.output());
    }
    if (plan instanceof RenameTable rename && rename.child() instanceof ResolvedTable table) return renamed(rename, table.identifier());
    if (plan instanceof RenameTable rename && rename.child() instanceof ResolvedV2View view) return renamed(rename, view.identifier());
    return plan;
  }

  private static boolean isWhole(LogicalPlan plan) {
    return plan instanceof ResolvedTable table && !(table.table() instanceof ShownTable);
  }

  private static LogicalPlan shown(LogicalPlan plan) {
    ResolvedTable table = (ResolvedTable) plan;
    return table.copy(table.catalog(), table.identifier(), new ShownTable(table.table()), table.outputAttributes());
  }

  /** Spark takes the whole new name for layer and table: neither may it lack the layer, nor name the catalog. */
  private static LogicalPlan renamed(RenameTable rename, Identifier before) {
    List<String> name = new ArrayList<>(NameChecks.list(rename.newName()));
    if (name.size() == 2) return rename;
    if (name.size() == 1) name.addAll(0, List.of(before.namespace()));
    else if (name.get(0).equals(NameChecks.CATALOG)) name.remove(0);
    return rename.copy(rename.child(), CollectionConverters.asScala(name).toList(), rename.isView());
  }
}
