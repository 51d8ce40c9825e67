package headgate.guard;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.internal.SessionState;

/** The settings without which the guard does not hold, looked at again for every statement. */
final class Setup {

  static final String CATALOG_CONF = "spark.sql.catalog.";
  private static final String OFF = "false";

  /** What each setting must be. */
  static final Map<String, String> NEEDED =
      Map.of(
          "spark.sql.runSQLOnFiles", OFF,
          "spark.sql.variable.substitute", OFF,
          "spark.sql.defaultCatalog", NameChecks.CATALOG,
          CATALOG_CONF + NameChecks.CATALOG + ".cache-enabled", OFF);

  /** What each setting must be if it is set at all. */
  static final Map<String, String> IF_SET =
      Map.of(
          "spark.sql.analyzer.singlePassResolver.enabled", OFF,
          "spark.sql.analyzer.singlePassResolver.enabledTentatively", OFF);

  private final SparkSession session;

  Setup(SparkSession session) {
    this.session = session;
  }

  /**
   * Refuse when the session has other settings than its server, its own apart. Asks no catalog, so that it works before
   * there is one.
   */
  void checkSettings() {
    boolean held = NEEDED.entrySet().stream().allMatch(entry -> entry.getValue().equals(conf(entry.getKey())));
    boolean unset = IF_SET.entrySet().stream().allMatch(entry -> entry.getValue().equals(conf(entry.getKey(), OFF)));
    if (!held || !unset || !SessionSettings.hold(session.sparkContext().getConf(), state().conf().getAllConfs())) throw changed();
  }

  /** Refuse when the session has left our catalog. */
  void checkCatalog() {
    if (!NameChecks.CATALOG.equals(state().catalogManager().currentCatalog().name())) throw changed();
  }

  private static Refused changed() {
    return new Refused("this session", "its settings were changed; open a new one");
  }

  /** Whether the session asks what the columns of its queries are made of. No SQL can set that. */
  boolean tellsOrigins() {
    return "true".equals(conf(OriginsRule.KEY, OFF));
  }

  /** The member for whom the session acts, by mail address; empty if it was not told. */
  String user() {
    return conf(UserRule.KEY, "");
  }

  String timeZone() {
    return state().conf().sessionLocalTimeZone();
  }

  /** Where tables are that are named without a layer. */
  List<String> layer() {
    return List.of(state().catalogManager().currentNamespace());
  }

  boolean isCatalog(String name) {
    return state().conf().contains(CATALOG_CONF + name);
  }

  /** Plan a statement as EXPLAIN does, without running it: whatever is wrong with it is thrown. */
  void plan(LogicalPlan statement) {
    state().executePlan(statement, CommandExecutionMode.SKIP()).executedPlan();
  }

  private String conf(String key) {
    return conf(key, null);
  }

  private String conf(String key, String otherwise) {
    return state().conf().getConfString(key, otherwise);
  }

  /** Asked for when needed: while the session is being built there is none yet. */
  private SessionState state() {
    return ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
  }
}
