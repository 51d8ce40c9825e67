package headgate.guard;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** The outermost parser: what it gives has passed the lists. */
final class GuardParser implements ParserInterface {

  private final Setup setup;

  /** Iceberg looks for its own parser behind a field of this name. */
  private final ParserInterface delegate;

  GuardParser(Setup setup, ParserInterface delegate) {
    this.setup = setup;
    this.delegate = delegate;
  }

  @Override
  public LogicalPlan parsePlan(String text) throws ParseException {
    Depth.statement(text);
    return checked(delegate.parsePlan(text));
  }

  @Override
  public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters) throws ParseException {
    Depth.statement(text);
    return checked(delegate.parsePlanWithParameters(text, parameters));
  }

  @Override
  public LogicalPlan parseQuery(String text) throws ParseException {
    Depth.statement(text);
    return checked(delegate.parseQuery(text));
  }

  @Override
  public Expression parseExpression(String text) throws ParseException {
    Depth.of(text);
    Expression found = delegate.parseExpression(text);
    check(found);
    return found;
  }

  @Override
  public TableIdentifier parseTableIdentifier(String text) throws ParseException {
    Depth.of(text);
    return delegate.parseTableIdentifier(text);
  }

  @Override
  public FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException {
    Depth.of(text);
    return delegate.parseFunctionIdentifier(text);
  }

  @Override
  public Seq<String> parseMultipartIdentifier(String text) throws ParseException {
    Depth.of(text);
    return delegate.parseMultipartIdentifier(text);
  }

  @Override
  public StructType parseTableSchema(String text) throws ParseException {
    Depth.of(text);
    return delegate.parseTableSchema(text);
  }

  @Override
  public StructType parseRoutineParam(String text) throws ParseException {
    Depth.of(text);
    return delegate.parseRoutineParam(text);
  }

  @Override
  public DataType parseDataType(String text) throws ParseException {
    Depth.of(text);
    return delegate.parseDataType(text);
  }

  private LogicalPlan checked(LogicalPlan plan) {
    check(plan);
    return plan;
  }

  private void check(Object parsed) {
    new Walk(setup).check(parsed, Walk.Stage.PARSED);
    setup.checkSettings();
  }
}
