package headgate.guard;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.connect.service.SparkListenerConnectOperationCanceled;
import org.apache.spark.sql.connect.service.SparkListenerConnectOperationClosed;
import org.apache.spark.sql.connect.service.SparkListenerConnectOperationFailed;

/**
 * Cancels the jobs of operations that have ended.
 *
 * <p>An interrupt that meets a statement between two jobs stops its thread, and the job that this thread has just handed
 * over would run on for nobody. Both orders are covered: a job that started before the end is cancelled at the end, one
 * that starts after it is cancelled when it starts.
 */
final class EndedOperations extends SparkListener {

  private static final int REMEMBERED = 4096;
  private static final String TAGS = "spark.job.tags";
  private static final String REASON = "its statement has ended";

  private final SparkContext context;
  private final Set<String> ended =
      Collections.newSetFromMap(
          new LinkedHashMap<>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Boolean> eldest) {
              return size() > REMEMBERED;
            }
          });

  EndedOperations(SparkContext context) {
    this.context = context;
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    String tag = null;
    if (event instanceof SparkListenerConnectOperationCanceled found) tag = found.jobTag();
    if (event instanceof SparkListenerConnectOperationFailed found) tag = found.jobTag();
    if (event instanceof SparkListenerConnectOperationClosed found) tag = found.jobTag();
    if (tag != null && ended.add(tag)) context.cancelJobsWithTag(tag, REASON);
  }

  @Override
  public void onJobStart(SparkListenerJobStart job) {
    Properties properties = job.properties();
    String tags = properties == null ? null : properties.getProperty(TAGS);
    if (tags == null) return;
    for (String tag : tags.split(",")) {
      if (ended.contains(tag)) context.cancelJob(job.jobId(), REASON);
    }
  }
}
