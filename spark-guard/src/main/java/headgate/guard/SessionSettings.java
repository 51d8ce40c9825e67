package headgate.guard;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;

/** What a session may have set for itself: for whom it acts, its time zone and layer, and whether it asks for origins. */
final class SessionSettings {

  private static final Map<String, Pattern> OWN =
      Map.of(
          Setup.CATALOG_CONF + NameChecks.CATALOG + ".header.Authorization", Pattern.compile("Bearer [A-Za-z0-9._~+/=-]{1,8192}"),
          "spark.sql.session.timeZone", Pattern.compile("[A-Za-z0-9_+:/-]{1,64}"),
          Setup.CATALOG_CONF + NameChecks.CATALOG + ".default-namespace", Pattern.compile("[A-Za-z_][A-Za-z0-9_]{0,254}"),
          UserRule.KEY, Pattern.compile("[^\\p{Cntrl}]{1,320}"),
          OriginsRule.KEY, Pattern.compile("true"));

  private static final int REMEMBERED = 100_000;

  /** Sessions that have sent a statement, the latest of them; a session lives for one statement, or a few. */
  private static final Map<String, Boolean> STARTED =
      Collections.synchronizedMap(
          new LinkedHashMap<>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Boolean> eldest) {
              return size() > REMEMBERED;
            }
          });

  /** A session sends a statement: from now on it sets nothing. */
  static void start(String session) {
    STARTED.put(session, true);
  }

  /** Refuses what a session may not set, or no longer. */
  static void set(String session, String key, String value) {
    Pattern allowed = OWN.get(key);
    if (allowed == null) throw new Refused("the setting of a key that is not the session's own", "send SQL");
    if (!allowed.matcher(value).matches()) throw new Refused("this value of a setting", "send another");
    if (STARTED.containsKey(session)) throw new Refused("a setting after the first statement", "open a new session");
  }

  /** Whether a session has the settings that its server was started with, and else only its own. */
  static boolean hold(SparkConf server, scala.collection.Map<String, String> session) {
    return session.forall(one -> OWN.containsKey(one._1()) || one._2().equals(server.get(one._1(), null)));
  }

  private SessionSettings() {}
}
