package headgate.guard;

import java.util.Locale;
import java.util.Set;

/**
 * How deep a statement is nested, by its text alone. Spark's parser takes minutes for a few thousand brackets, cannot be
 * interrupted meanwhile, and what it gives may take all memory; so what is that deep is refused before.
 */
final class Depth {

  private static final int MOST = 200;
  private static final int MOST_COMMENTS = 10;
  private static final Set<String> TYPES = Set.of("ARRAY", "MAP", "STRUCT");
  private static final Set<String> PREFIXES = Set.of("NOT", "EXPLAIN", "-", "+", "~", "!");

  private final String text;
  private int at;
  private int brackets;
  private int cases;
  private int types;
  private int prefixes;
  private String last = "";

  private Depth(String text) {
    this.text = text;
  }

  static void check(String text) {
    Depth depth = new Depth(text);
    while (depth.at < text.length()) depth.step();
  }

  private void step() {
    char here = text.charAt(at);
    if (Character.isWhitespace(here)) at++;
    else if (text.startsWith("--", at)) at = after("\n", at + 2);
    else if (text.startsWith("/*", at)) comment();
    else if (here == '\'' || here == '"' || here == '`') quoted(here);
    else if (Character.isLetterOrDigit(here) || here == '_') word();
    else symbol(here);
  }

  private void symbol(char here) {
    at++;
    if (here == '(' || here == '[' || here == '{') brackets++;
    else if (here == ')' || here == ']' || here == '}') brackets--;
    else if (here == '<' && TYPES.contains(last)) types++;
    else if (here == '>' && types > 0) types--;
    token(String.valueOf(here));
  }

  private void word() {
    int start = at;
    while (at < text.length() && (Character.isLetterOrDigit(text.charAt(at)) || text.charAt(at) == '_')) at++;
    String word = text.substring(start, at).toUpperCase(Locale.ROOT);
    if (word.equals("CASE")) cases++;
    else if (word.equals("END") && cases > 0) cases--;
    token(word);
  }

  private void quoted(char quote) {
    at++;
    while (at < text.length() && text.charAt(at) != quote) at += text.charAt(at) == '\\' && quote != '`' ? 2 : 1;
    at++;
    token("");
  }

  /** Comments hold comments; one that does not end ends with the text. */
  private void comment() {
    int open = 0;
    do {
      if (text.startsWith("/*", at)) open++;
      else if (text.startsWith("*/", at)) open--;
      else at--;
      at += 2;
      if (open > MOST_COMMENTS) throw new Refused("comments inside comments", "close them one by one");
    } while (open > 0 && at < text.length());
  }

  private void token(String token) {
    last = token;
    prefixes = PREFIXES.contains(token) ? prefixes + 1 : 0;
    if (brackets > MOST || cases > MOST || types > MOST || prefixes > MOST) {
      throw new Refused("a statement that is nested more than " + MOST + " deep", "write it in parts");
    }
  }

  private int after(String end, int from) {
    int found = text.indexOf(end, from);
    return found < 0 ? text.length() : found + end.length();
  }
}
