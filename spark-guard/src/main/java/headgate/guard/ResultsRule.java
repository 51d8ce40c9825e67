package headgate.guard;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.ArrayTransform;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.StructsToJson;
import org.apache.spark.sql.catalyst.expressions.TransformKeys;
import org.apache.spark.sql.catalyst.expressions.TransformValues;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.command.DescribeQueryCommand;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.CalendarIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.types.YearMonthIntervalType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Converts intervals and VARIANT in the result of a query to text, also inside arrays, maps and structs. Arrow, Parquet or JSON
 * cannot hold them: Spark's own Arrow output of a year-month interval, for one, is readable by no Arrow library for Python.
 */
final class ResultsRule extends Rule<LogicalPlan> {

  /** The key in the metadata of a converted column under which its type in SQL is found. */
  static final String KEY = "headgate.type";

  /** The name above the query of a DESCRIBE QUERY, which must show the types of the query itself. */
  private static final String DESCRIBED = "headgate described";

  private final Setup setup;

  ResultsRule(Setup setup) {
    this.setup = setup;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan.exists(DescribeQueryCommand.class::isInstance)) return Rewrite.down(plan, ResultsRule::marked);
    boolean isWhole = plan.resolved() && !(plan instanceof Command) && AnalysisContext.get().outerPlan().isEmpty();
    return isWhole && !isMarked(plan) && plan.output().exists(one -> needsText(one.dataType())) && !Loops.isRunning() ? converted(plan) : plan;
  }

  private static LogicalPlan marked(LogicalPlan plan) {
    if (!(plan instanceof DescribeQueryCommand describe) || isMarked(describe.plan())) return plan;
    return describe.copy(describe.queryText(), SubqueryAlias$.MODULE$.apply(DESCRIBED, describe.plan()));
  }

  private static boolean isMarked(LogicalPlan plan) {
    return plan instanceof SubqueryAlias alias && alias.alias().equals(DESCRIBED);
  }

  private LogicalPlan converted(LogicalPlan plan) {
    List<NamedExpression> columns = new ArrayList<>();
    for (Attribute one : CollectionConverters.asJava(plan.output())) columns.add(needsText(one.dataType()) ? column(one) : one);
    return new Project(CollectionConverters.asScala(columns).toList(), plan);
  }

  private NamedExpression column(Attribute one) {
    MetadataBuilder metadata = new MetadataBuilder().withMetadata(one.metadata()).putString(KEY, one.dataType().sql());
    return new Alias(
        text((Expression) one), one.name(), NamedExpression.newExprId(), one.qualifier(), Option.apply(metadata.build()),
        CollectionConverters.asScala(List.<String>of()).toList());
  }

  private Expression text(Expression value) {
    DataType type = value.dataType();
    if (!needsText(type)) return value;
    if (type instanceof VariantType) return new StructsToJson(noOptions(), value, timeZone());
    if (type instanceof ArrayType array) {
      NamedLambdaVariable element = variable("element", array.elementType(), array.containsNull());
      return new ArrayTransform(value, function(text(element), element));
    }
    if (type instanceof MapType map) return map(value, map);
    if (type instanceof StructType struct) return struct(value, struct);
    return new Cast(value, DataTypes.StringType, timeZone(), EvalMode.ANSI());
  }

  private Expression map(Expression map, MapType type) {
    Expression found = map;
    if (needsText(type.valueType())) {
      NamedLambdaVariable key = variable("key", type.keyType(), false);
      NamedLambdaVariable value = variable("value", type.valueType(), type.valueContainsNull());
      found = new TransformValues(found, function(text(value), key, value));
    }
    if (needsText(type.keyType())) {
      MapType now = (MapType) found.dataType();
      NamedLambdaVariable key = variable("key", now.keyType(), false);
      NamedLambdaVariable value = variable("value", now.valueType(), now.valueContainsNull());
      found = new TransformKeys(found, function(text(key), key, value));
    }
    return found;
  }

  private Expression struct(Expression struct, StructType type) {
    List<Expression> parts = new ArrayList<>();
    for (int n = 0; n < type.fields().length; n++) {
      StructField field = type.fields()[n];
      parts.add(Literal$.MODULE$.apply(field.name()));
      parts.add(text(new GetStructField(struct, n, Option.apply(field.name()))));
    }
    Expression found = new CreateNamedStruct(CollectionConverters.asScala(parts).toList());
    return struct.nullable() ? new If(new IsNull(struct), new Literal(null, found.dataType()), found) : found;
  }

  private static boolean needsText(DataType type) {
    return type.existsRecursively(ResultsRule::isConverted);
  }

  private static boolean isConverted(DataType type) {
    return type instanceof YearMonthIntervalType
        || type instanceof DayTimeIntervalType
        || type instanceof CalendarIntervalType
        || type instanceof VariantType;
  }

  private static NamedLambdaVariable variable(String name, DataType type, boolean isNullable) {
    return new NamedLambdaVariable(name, type, isNullable, NamedExpression.newExprId(), new AtomicReference<>());
  }

  private static LambdaFunction function(Expression body, NamedExpression... arguments) {
    return new LambdaFunction(body, CollectionConverters.asScala(List.of(arguments)).toList(), false);
  }

  private static scala.collection.immutable.Map<String, String> noOptions() {
    return scala.collection.immutable.Map$.MODULE$.<String, String>empty();
  }

  private Option<String> timeZone() {
    return Option.apply(setup.timeZone());
  }
}
