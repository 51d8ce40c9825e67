package headgate.guard;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Puts the guard into every session. It must be the last of `spark.sql.extensions`, so that its parser is the outermost. */
public final class GuardExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectParser((session, parser) -> new GuardParser(new Setup(session), parser));
    extensions.injectHintResolutionRule(session -> new EarlyRule(new Setup(session)));
    extensions.injectPostHocResolutionRule(session -> new PathsRule());
    extensions.injectPostHocResolutionRule(session -> new TablesRule());
    extensions.injectPostHocResolutionRule(session -> new UserRule(new Setup(session)));
    extensions.injectPostHocResolutionRule(session -> new ResultsRule(new Setup(session)));
    extensions.injectPostHocResolutionRule(session -> new OriginsRule(new Setup(session)));
    extensions.injectCheckRule(session -> new CheckRule(new Setup(session)));
    return BoxedUnit.UNIT;
  }
}
