package headgate.guard;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedProcedure;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunctionName;
import org.apache.spark.sql.catalyst.analysis.UnresolvedGenerator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedView;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.CurrentUser;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.UsingJoin;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.plans.logical.views.CreateIcebergView;
import org.apache.spark.sql.catalyst.plans.logical.views.ResolvedV2View;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.command.DescribeQueryCommand;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Product;
import scala.collection.Seq;

/** What a listed class must hold besides. A check answers whether its elements are to be visited too. */
final class Checks {

  private static final String PRIVILEGES = UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES();
  private static final List<String> CODE =
      List.of("org.apache.spark.sql.catalyst.", "org.apache.spark.unsafe.", "org.apache.iceberg.spark.functions.");
  private static final List<Class<? extends LogicalPlan>> NAMED_BY_ICEBERG =
      List.of(
          AddPartitionField.class, DropPartitionField.class, ReplacePartitionField.class,
          SetWriteDistributionAndOrdering.class, CreateOrReplaceBranch.class, CreateOrReplaceTag.class, DropBranch.class,
          DropTag.class, SetIdentifierFields.class, DropIdentifierFields.class);

  private final Walk walk;
  private final Setup setup;
  private final NameChecks names;
  private final Specs specs;
  private final Map<Class<?>, Predicate<Object>> byClass = new HashMap<>();

  /** The view that the statement makes; null if it makes none. */
  private Identifier view;

  Checks(Walk walk, Setup setup) {
    this.walk = walk;
    this.setup = setup;
    this.names = new NameChecks(setup);
    this.specs = new Specs(names);
    unresolvedNames();
    resolvedNames();
    rounds();
    statements();
    changes();
    definitions();
    views();
    expressions();
  }

  boolean plan(LogicalPlan plan) {
    return byClass.getOrDefault(plan.getClass(), any -> true).test(plan);
  }

  boolean expression(Expression expression) {
    return byClass.getOrDefault(expression.getClass(), any -> true).test(expression);
  }

  boolean value(Object value) {
    return byClass.getOrDefault(value.getClass(), any -> true).test(value);
  }

  private void unresolvedNames() {
    on(UnresolvedRelation.class, one -> {
      names.table(one.multipartIdentifier());
      notItself(one.multipartIdentifier());
      noOptions(one.options());
      if (one.isStreaming()) throw new Refused("STREAM", "read the table itself");
      return false;
    });
    on(UnresolvedTable.class, one -> leaf(() -> names.table(one.multipartIdentifier())));
    on(UnresolvedTableOrView.class, one -> leaf(() -> names.table(one.multipartIdentifier())));
    on(UnresolvedView.class, one -> leaf(() -> names.table(one.multipartIdentifier())));
    on(UnresolvedIdentifier.class, one -> leaf(() -> names.table(one.nameParts())));
    on(UnresolvedNamespace.class, one -> leaf(() -> names.identifier(one.multipartIdentifier(), true)));
    on(UnresolvedFunctionName.class, one -> leaf(() -> names.function(one.multipartIdentifier())));
    on(UnresolvedTableValuedFunction.class, one -> inside(() -> names.function(one.name())));
    for (Class<? extends LogicalPlan> named : NAMED_BY_ICEBERG) on(named, this::namedFirst);
  }

  /** Iceberg's commands hold the table's name as plain texts and look it up when they run: nothing else sees it. */
  @SuppressWarnings("unchecked")
  private boolean namedFirst(LogicalPlan plan) {
    names.table((Seq<String>) ((Product) plan).productElement(0));
    return true;
  }

  private void resolvedNames() {
    on(DataSourceV2Relation.class, one -> {
      Tables.relation(one.table(), one.catalog(), one.identifier());
      noOptions(one.options());
      return false;
    });
    on(DataSourceV2ScanRelation.class, one -> {
      walk.push(one.relation());
      return false;
    });
    on(ResolvedTable.class, one -> {
      Tables.catalog(one.catalog());
      Tables.table(one.table());
      return false;
    });
    on(ResolvedV2View.class, one -> leaf(() -> Tables.catalog(one.catalog())));
    on(ResolvedIdentifier.class, one -> {
      // Iceberg's parser resolves the names of views, which no other check has seen then.
      Tables.catalog(one.catalog());
      names.table(Stream.concat(Stream.of(one.identifier().namespace()), Stream.of(one.identifier().name())).toList());
      return false;
    });
    on(ResolvedNamespace.class, one -> leaf(() -> Tables.catalog(one.catalog())));
    on(ResolvedProcedure.class, one -> leaf(() -> Calls.resolved(one)));
  }

  /** What Spark makes of the rows of a round: rows, and its own way of reading them. */
  private void rounds() {
    on(LogicalRDD.class, one -> false);
    on(DeserializeToObject.class, one -> {
      walk.push(one.child());
      return false;
    });
  }

  private void statements() {
    on(Call.class, one -> {
      if (one.procedure() instanceof ResolvedProcedure) return true;
      Calls.parsed(one, names);
      return false;
    });
    on(ExplainCommand.class, one -> unresolvedInside(one.logicalPlan()));
    on(DescribeQueryCommand.class, one -> unresolvedInside(one.plan()));
    on(CommandResult.class, one -> unresolvedInside(one.commandLogicalPlan()));
    on(LocalRelation.class, one -> {
      if (one.isStreaming()) throw new Refused("STREAM", "read the table itself");
      return false;
    });
    on(DescribeRelation.class, one ->
        inside(() -> {
          if (one.partitionSpec().nonEmpty()) throw new Refused("DESCRIBE ... PARTITION", "use DESCRIBE TABLE");
        }));
    on(ShowCreateTable.class, one ->
        inside(() -> {
          if (one.asSerde()) throw new Refused("AS SERDE", "use SHOW CREATE TABLE");
        }));
    on(ShowTableProperties.class, one ->
        inside(() -> {
          if (one.propertyKey().nonEmpty()) names.property(one.propertyKey().get());
        }));
    on(RenameTable.class, one ->
        inside(() -> {
          names.table(one.newName());
          if (!one.isView()) notView(one.child(), "ALTER TABLE of a view; use ALTER VIEW");
        }));
    on(ShowColumns.class, one -> inside(() -> notView(one.child(), "SHOW COLUMNS of a view; use DESCRIBE")));
    on(AppendData.class, one -> inside(() -> noOptions(one.writeOptions())));
    on(OverwriteByExpression.class, one -> inside(() -> noOptions(one.writeOptions())));
    on(OverwritePartitionsDynamic.class, one -> inside(() -> noOptions(one.writeOptions())));
    on(UsingJoin.class, one -> inside(() -> names.column(one.usingColumns())));
  }

  /** Rows are changed in tables alone: Spark would take a view for the table behind it, and forget the view's filter. */
  private void changes() {
    on(DeleteFromTable.class, one -> inside(() -> changed(one.table())));
    on(UpdateTable.class, one -> inside(() -> changed(one.table())));
    on(MergeIntoTable.class, one -> inside(() -> changed(one.targetTable())));
  }

  private static void changed(LogicalPlan target) {
    LogicalPlan named = target;
    while (named instanceof SubqueryAlias alias) named = alias.child();
    if (!(named instanceof UnresolvedRelation || named instanceof DataSourceV2Relation)) {
      throw new Refused("changing the rows of a view", "change those of the tables that it reads");
    }
  }

  private void definitions() {
    on(CreateTableAsSelect.class, one -> inside(() -> noOptions(one.writeOptions())));
    on(ReplaceTableAsSelect.class, one -> inside(() -> noOptions(one.writeOptions())));
    on(UnresolvedTableSpec.class, one -> inside(() -> specs.unresolved(one)));
    on(TableSpec.class, one -> leaf(() -> specs.resolved(one)));
    on(ColumnDefinition.class, one -> inside(() -> Specs.column(one)));
    on(SetTableProperties.class, one -> inside(() -> specs.properties(one.properties())));
    on(UnsetTableProperties.class, one -> inside(() -> NameChecks.list(one.propertyKeys()).forEach(names::property)));
    on(CreateNamespace.class, one -> inside(() -> Specs.namespace(one)));
    on(DropTable.class, one ->
        inside(() -> {
          if (one.purge()) throw new Refused("PURGE", "use DROP TABLE");
        }));
    on(DropNamespace.class, one ->
        inside(() -> {
          if (one.cascade()) throw new Refused("CASCADE", "drop the tables first");
        }));
  }

  /** The query of a view is visited as any other, here and each time that the view is read. */
  private void views() {
    on(CreateView.class, one -> inside(() -> specs.properties(one.properties())));
    on(CreateIcebergView.class, one -> {
      specs.properties(one.properties());
      if (one.child() instanceof ResolvedIdentifier made) view = made.identifier();
      walk.push(one.child());
      // Iceberg's parser puts each WITH where it is used, so that its query holds classes that no other parsed one does.
      walk.push(one.query(), walk.stage() == Walk.Stage.PARSED ? Walk.Stage.EARLY : walk.stage());
      return false;
    });
    on(SetViewProperties.class, one -> inside(() -> specs.properties(one.properties())));
    on(UnsetViewProperties.class, one -> inside(() -> NameChecks.list(one.propertyKeys()).forEach(names::property)));
  }

  /** Iceberg compares whole names alone, and so overlooks a view that names itself as layer.view. */
  private void notItself(Seq<String> relation) {
    if (view == null) return;
    List<String> read = new ArrayList<>(NameChecks.list(relation));
    if (read.size() == 1) read.addAll(0, setup.layer());
    else if (read.size() > 2) read.remove(0);
    String made = String.join(".", view.namespace()) + "." + view.name();
    if (made.equalsIgnoreCase(String.join(".", read))) throw new Refused("a view that reads itself", "leave the view out of its query");
  }

  private void expressions() {
    on(Literal.class, one -> {
      walk.push(one.dataType());
      return false;
    });
    on(UnresolvedAttribute.class, one -> leaf(() -> names.column(one.nameParts())));
    on(UnresolvedFunction.class, one ->
        inside(() -> {
          if (one.isInternal()) throw new Refused("a function of Spark's own workings", "use built-in functions");
          names.function(one.nameParts());
          Schemas.check(one);
        }));
    on(UnresolvedGenerator.class, one -> {
      names.function(one.name().nameParts());
      walk.push(one.children());
      return false;
    });
    on(StaticInvoke.class, one -> {
      code(one.staticObject());
      walk.push(one.children());
      return false;
    });
    on(Invoke.class, one -> true);
    // What UserRule has not replaced is only shown: functions that Spark writes as others keep their own arguments.
    on(CurrentUser.class, one -> leaf(names::user));
    on(ApplyFunctionExpression.class, one -> {
      code(one.function().getClass());
      walk.push(one.children());
      return false;
    });
  }

  private <T> void on(Class<T> type, Predicate<? super T> check) {
    byClass.put(type, any -> check.test(type.cast(any)));
  }

  /** Checked, and nothing in it to visit. */
  private static boolean leaf(Runnable check) {
    check.run();
    return false;
  }

  /** Checked, and its elements are visited too. */
  private static boolean inside(Runnable check) {
    check.run();
    return true;
  }

  /** Spark has no plan for these, and calls that a fault of its own. */
  private static void notView(LogicalPlan named, String words) {
    if (named instanceof ResolvedV2View) throw Refused.because(words);
  }

  /** A resolved EXPLAIN or DESCRIBE QUERY still holds a statement that is not. */
  private boolean unresolvedInside(LogicalPlan held) {
    walk.push(held, walk.stage() == Walk.Stage.RESOLVED ? Walk.Stage.EARLY : walk.stage());
    return false;
  }

  private static void noOptions(CaseInsensitiveStringMap options) {
    options.keySet().forEach(key -> option(key));
  }

  private static void noOptions(scala.collection.Map<String, String> options) {
    options.keysIterator().foreach(key -> {
      option(key);
      return null;
    });
  }

  private static void option(String key) {
    if (!key.toLowerCase(Locale.ROOT).equals(PRIVILEGES.toLowerCase(Locale.ROOT))) {
      throw new Refused("options on a table", "leave out WITH (...) and OPTIONS (...)");
    }
  }

  private static void code(Class<?> owner) {
    String name = owner.getName();
    if (CODE.stream().noneMatch(name::startsWith)) {
      throw new Refused("a function that is not built in", "use a function that the reference lists");
    }
  }
}
