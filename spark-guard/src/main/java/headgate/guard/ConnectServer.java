package headgate.guard;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connect.service.SparkConnectService;
import org.apache.spark.sql.connect.service.SparkConnectService$;

/**
 * A Spark Connect server whose sessions share one class loader.
 *
 * <p>Spark's own server gives each session a class loader, for classes that its client uploads. Generated code is kept per
 * class loader, so with a session for each statement it would be compiled anew, and run cold, every time. Nobody uploads
 * classes here: {@link ConnectInterceptor} refuses the call.
 */
public final class ConnectServer {

  private ConnectServer() {}

  /** Serves until it is ended. */
  public static void main(String[] arguments) throws InterruptedException {
    SparkSession session =
        SparkSession.builder()
            .config("spark.sql.artifact.isolation.enabled", false)
            .config("spark.sql.artifact.isolation.alwaysApplyClassloader", false)
            .getOrCreate();
    try {
      SparkConnectService.start(session.sparkContext());
      SparkConnectService$.MODULE$.server().awaitTermination();
    } finally {
      session.stop();
    }
  }
}
