package headgate.guard;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UnionLoop;
import org.apache.spark.sql.catalyst.plans.logical.UnionLoopRef;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Which columns of tables the columns of a resolved plan are made of, followed by the ids that Spark gives to columns. A column
 * counts where its values go into the result's, not where it only chooses rows.
 */
final class Origins {

  record Column(String table, String name) implements Comparable<Column> {
    @Override
    public int compareTo(Column other) {
      int order = table.compareTo(other.table);
      return order != 0 ? order : name.compareTo(other.name);
    }
  }

  private final Map<Long, Set<Column>> known = new HashMap<>();
  private final Map<Long, List<Attribute>> named = new HashMap<>();
  private final Map<Long, List<Attribute>> loops = new HashMap<>();
  private final Set<Object> inner = Collections.newSetFromMap(new IdentityHashMap<>());

  Origins(LogicalPlan plan) {
    visit(plan);
  }

  Set<Column> of(Attribute column) {
    return known.getOrDefault(column.exprId().id(), Set.of());
  }

  private void visit(LogicalPlan plan) {
    if (plan instanceof DataSourceV2Relation relation) {
      table(relation);
    } else if (plan instanceof CTERelationRef ref) {
      same(list(ref.output()), named.get(ref.cteId()));
    } else if (plan instanceof UnionLoopRef ref) {
      same(list(ref.output()), loops.get(ref.loopId()));
    } else if (plan instanceof UnionLoop loop) {
      loop(loop);
    } else {
      for (LogicalPlan child : list(plan.children())) visit(child);
      made(plan);
    }
  }

  private void table(DataSourceV2Relation relation) {
    boolean isTable = relation.table() instanceof SparkTable table && !(table.table() instanceof BaseMetadataTable);
    if (!isTable || relation.identifier().isEmpty()) return;
    Identifier identifier = relation.identifier().get();
    String name = String.join(".", String.join(".", identifier.namespace()), identifier.name()).toLowerCase(Locale.ROOT);
    for (AttributeReference one : list(relation.output())) add(one, Set.of(new Column(name, one.name())));
  }

  /** A loop's columns are those of its start and of every round, which in turn are made of the loop's. */
  private void loop(UnionLoop loop) {
    visit(loop.anchor());
    List<Attribute> output = list(loop.output());
    same(output, list(loop.anchor().output()));
    loops.put(loop.id(), output);
    for (int before = -1, now = count(output); before < now; before = now, now = count(output)) {
      visit(loop.recursion());
      same(output, list(loop.recursion().output()));
    }
  }

  private int count(List<Attribute> columns) {
    return columns.stream().mapToInt(one -> of(one).size()).sum();
  }

  /** The columns that a node makes of those below it; all others keep their ids. */
  private void made(LogicalPlan plan) {
    for (Expression one : list(plan.expressions())) aliases(one);
    if (plan instanceof CTERelationDef def) {
      named.put(def.id(), list(def.child().output()));
    } else if (plan instanceof Union union) {
      for (LogicalPlan child : list(union.children())) same(list(union.output()), list(child.output()));
    } else if (plan instanceof Generate generate) {
      Set<Column> from = from((Expression) generate.generator());
      for (Attribute one : list(generate.generatorOutput())) add(one, from);
    } else if (plan instanceof Expand expand) {
      List<Attribute> output = list(expand.output());
      for (scala.collection.immutable.Seq<Expression> row : list(expand.projections())) {
        List<Expression> values = list(row);
        for (int n = 0; n < output.size(); n++) add(output.get(n), from(values.get(n)));
      }
    }
  }

  private void aliases(Expression expression) {
    if (expression instanceof PlanExpression<?> subquery) enter(subquery);
    for (Expression child : list(expression.children())) aliases(child);
    if (expression instanceof Alias alias) known.put(alias.exprId().id(), from(alias.child()));
  }

  private Set<Column> from(Expression expression) {
    Set<Column> found = new TreeSet<>();
    gather(expression, found);
    return found;
  }

  private void gather(Expression expression, Set<Column> found) {
    if (expression instanceof PlanExpression<?> subquery) {
      enter(subquery);
      boolean gives = !(subquery instanceof Exists) && subquery.plan() instanceof LogicalPlan;
      if (gives) for (Attribute one : list(((LogicalPlan) (Object) subquery.plan()).output())) found.addAll(of(one));
      return;
    }
    if (expression instanceof OuterReference outer) gather((Expression) outer.e(), found);
    else if (expression instanceof Attribute attribute) found.addAll(of(attribute));
    for (Expression child : list(expression.children())) gather(child, found);
  }

  /** Each subquery once: they lie in one another. */
  private void enter(PlanExpression<?> subquery) {
    Object plan = subquery.plan();
    if (plan instanceof LogicalPlan query && inner.add(plan)) visit(query);
  }

  private void same(List<Attribute> columns, List<Attribute> others) {
    for (int n = 0; others != null && n < Math.min(columns.size(), others.size()); n++) add(columns.get(n), of(others.get(n)));
  }

  private void add(Attribute column, Set<Column> more) {
    known.merge(column.exprId().id(), more, Origins::joined);
  }

  private static Set<Column> joined(Set<Column> some, Set<Column> more) {
    Set<Column> found = new TreeSet<>(some);
    found.addAll(more);
    return found;
  }

  private static <T> List<T> list(scala.collection.Seq<? extends T> some) {
    return new ArrayList<>(CollectionConverters.asJava(some));
  }
}
