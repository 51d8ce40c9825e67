package headgate.guard;

/** A statement that the guard does not let through. The message names only what the statement itself said. */
public final class Refused extends RuntimeException {

  private static final long serialVersionUID = 1L;

  public Refused(String what, String instead) {
    super("HEADGATE_REFUSED: " + what + "; " + instead);
  }

  /** From the words of a list: "what; what to use instead". */
  static Refused because(String words) {
    String[] parts = words.split("; ", 2);
    return new Refused(parts[0], parts[1]);
  }
}
