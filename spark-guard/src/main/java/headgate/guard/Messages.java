package headgate.guard;

import java.util.Collection;
import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.connect.proto.AnalyzePlanRequest;
import org.apache.spark.connect.proto.AnalyzePlanRequest.AnalyzeCase;
import org.apache.spark.connect.proto.ConfigRequest;
import org.apache.spark.connect.proto.ConfigRequest.Operation.OpTypeCase;
import org.apache.spark.connect.proto.ExecutePlanRequest;
import org.apache.spark.connect.proto.Expression;
import org.apache.spark.connect.proto.Expression.Literal.LiteralTypeCase;
import org.apache.spark.connect.proto.KeyValue;
import org.apache.spark.connect.proto.Plan;
import org.apache.spark.connect.proto.Relation;
import org.apache.spark.connect.proto.SQL;
import org.apache.spark.connect.proto.SqlCommand;
import org.apache.spark.connect.proto.UserContext;

/** The messages of Spark Connect that carry SQL text with literal arguments, and nothing else. */
final class Messages {

  /** Values of one kind and no depth: Spark writes an argument into the text of its statement, and parses it again. */
  private static final Set<LiteralTypeCase> PLAIN =
      EnumSet.of(
          LiteralTypeCase.NULL, LiteralTypeCase.BOOLEAN, LiteralTypeCase.INTEGER, LiteralTypeCase.LONG,
          LiteralTypeCase.DOUBLE, LiteralTypeCase.DECIMAL, LiteralTypeCase.STRING, LiteralTypeCase.DATE,
          LiteralTypeCase.TIMESTAMP, LiteralTypeCase.TIMESTAMP_NTZ);

  static void check(Object message) {
    if (message instanceof ExecutePlanRequest request) execute(request);
    else if (message instanceof AnalyzePlanRequest request) analyze(request);
    else if (message instanceof ConfigRequest request) config(request);
    else throw refused("this message");
  }

  private static void execute(ExecutePlanRequest request) {
    user(request.getUserContext());
    for (ExecutePlanRequest.RequestOption option : request.getRequestOptionsList()) {
      if (option.hasExtension()) throw refused("an extension");
    }
    SessionSettings.start(request.getSessionId());
    plan(request.getPlan());
  }

  private static void analyze(AnalyzePlanRequest request) {
    user(request.getUserContext());
    SessionSettings.start(request.getSessionId());
    AnalyzeCase asked = request.getAnalyzeCase();
    if (asked == AnalyzeCase.SCHEMA) plan(request.getSchema().getPlan());
    else if (asked == AnalyzeCase.EXPLAIN) plan(request.getExplain().getPlan());
    else if (asked != AnalyzeCase.SPARK_VERSION) throw refused("this analysis");
  }

  private static void config(ConfigRequest request) {
    user(request.getUserContext());
    if (request.getOperation().getOpTypeCase() != OpTypeCase.SET) throw refused("this use of settings");
    ConfigRequest.Set set = request.getOperation().getSet();
    if (set.getSilent()) throw refused("this use of settings");
    for (KeyValue pair : set.getPairsList()) SessionSettings.set(request.getSessionId(), pair.getKey(), pair.getValue());
  }

  private static void user(UserContext context) {
    if (context.getExtensionsCount() > 0) throw refused("an extension");
  }

  private static void plan(Plan plan) {
    switch (plan.getOpTypeCase()) {
      case ROOT -> relation(plan.getRoot());
      case COMMAND -> {
        if (!plan.getCommand().hasSqlCommand()) throw refused("this command");
        command(plan.getCommand().getSqlCommand());
      }
      case COMPRESSED_OPERATION -> throw new Refused("a statement of this size", "send a shorter one");
      default -> throw refused("this plan");
    }
  }

  private static void command(SqlCommand command) {
    // The first two are what older clients send.
    plain(command.getArgsMap().values());
    plain(command.getPosArgsList());
    literals(command.getNamedArgumentsMap().values());
    literals(command.getPosArgumentsList());
    if (command.hasInput()) relation(command.getInput());
  }

  /** SQL, rows that were sent along (what a command answered), and how many of them to take. */
  private static void relation(Relation first) {
    Relation relation = first;
    for (int depth = 0; depth < 8; depth++) {
      switch (relation.getRelTypeCase()) {
        case SQL -> {
          sql(relation.getSql());
          return;
        }
        case LOCAL_RELATION -> {
          // Spark parses it by itself.
          Depth.of(relation.getLocalRelation().getSchema());
          return;
        }
        case LIMIT -> relation = relation.getLimit().getInput();
        case OFFSET -> relation = relation.getOffset().getInput();
        default -> throw refused("a plan that is not SQL");
      }
    }
    throw refused("a plan that is not SQL");
  }

  private static void sql(SQL sql) {
    plain(sql.getArgsMap().values());
    plain(sql.getPosArgsList());
    literals(sql.getNamedArgumentsMap().values());
    literals(sql.getPosArgumentsList());
  }

  private static void literals(Collection<Expression> arguments) {
    if (!arguments.stream().allMatch(Expression::hasLiteral)) throw refused("a computed argument");
    plain(arguments.stream().map(Expression::getLiteral).toList());
  }

  private static void plain(Collection<Expression.Literal> arguments) {
    if (!arguments.stream().allMatch(one -> PLAIN.contains(one.getLiteralTypeCase()))) throw refused("an argument of this type");
  }

  private static Refused refused(String what) {
    return new Refused(what, "send SQL");
  }

  private Messages() {}
}
