package headgate.guard;

import java.util.Set;
import org.sparkproject.connect.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import org.sparkproject.connect.grpc.Metadata;
import org.sparkproject.connect.grpc.ServerCall;
import org.sparkproject.connect.grpc.ServerCallHandler;
import org.sparkproject.connect.grpc.ServerInterceptor;
import org.sparkproject.connect.grpc.Status;

/** Passes only the calls that Headgate's own client makes; no plan is analysed for the others, so no rule would see them. */
public final class ConnectInterceptor implements ServerInterceptor {

  private static final String SERVICE = "spark.connect.SparkConnectService/";

  /** Calls that carry no plan: they end, resume or explain an execution of the same session. */
  private static final Set<String> PLAIN =
      Set.of("Interrupt", "ReattachExecute", "ReleaseExecute", "ReleaseSession", "FetchErrorDetails");

  private static final Set<String> LOOKED_INTO = Set.of("ExecutePlan", "AnalyzePlan", "Config");

  @Override
  public <Q, A> ServerCall.Listener<Q> interceptCall(ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
    String method = call.getMethodDescriptor().getFullMethodName();
    String name = method.startsWith(SERVICE) ? method.substring(SERVICE.length()) : "";
    if (PLAIN.contains(name)) return next.startCall(call, headers);
    if (LOOKED_INTO.contains(name)) return new Looking<>(call, next.startCall(call, headers));
    close(call, new Refused("the call " + (name.isEmpty() ? "of another service" : name), "send SQL"));
    return new ServerCall.Listener<>() {};
  }

  private static void close(ServerCall<?, ?> call, Refused refused) {
    call.close(Status.PERMISSION_DENIED.withDescription(refused.getMessage()), new Metadata());
  }

  /** Looks at each message before the server does. */
  private static final class Looking<Q> extends SimpleForwardingServerCallListener<Q> {
    private final ServerCall<Q, ?> call;
    private boolean closed;

    Looking(ServerCall<Q, ?> call, ServerCall.Listener<Q> next) {
      super(next);
      this.call = call;
    }

    @Override
    public void onMessage(Q message) {
      if (closed) return;
      try {
        Messages.check(message);
      } catch (Refused refused) {
        closed = true;
        close(call, refused);
        return;
      }
      super.onMessage(message);
    }

    /** Without its message the server would answer a half call, to a caller who has been answered. */
    @Override
    public void onHalfClose() {
      if (!closed) super.onHalfClose();
    }
  }
}
