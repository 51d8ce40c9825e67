package headgate.guard;

import java.util.Set;
import org.antlr.v4.runtime.CharStream;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Lexer;
import org.antlr.v4.runtime.Token;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;

/**
 * How deep a statement is nested, counted over the tokens of Spark's own lexer. Spark's parser takes minutes for a few
 * thousand brackets, cannot be interrupted meanwhile, and what it gives may take all memory; so a deep statement is
 * refused before it is parsed. A lexer of our own would disagree with Spark's on what a comment, a string or a hint is.
 */
public final class Depth {

  private static final int MOST = 200;
  private static final int MOST_AMBIGUOUS = 4;
  private static final int MOST_IN_AMBIGUOUS = 10_000;
  private static final int MOST_COMMENTS = 10;
  private static final int MOST_CHARACTERS = 1_000_000;

  private static final Set<Integer> TYPES = Set.of(SqlBaseLexer.ARRAY, SqlBaseLexer.MAP, SqlBaseLexer.STRUCT);

  /** Operators that stand before what they apply to. Each one in a row is a level. */
  private static final Set<Integer> PREFIXES =
      Set.of(
          SqlBaseLexer.NOT, SqlBaseLexer.BANG, SqlBaseLexer.MINUS, SqlBaseLexer.PLUS, SqlBaseLexer.TILDE, SqlBaseLexer.EXPLAIN);

  /** After these an END is a column's name, since an expression must follow: `CASE end WHEN 1 THEN end END`. */
  private static final Set<Integer> BEFORE_EXPRESSION =
      Set.of(
          SqlBaseLexer.CASE, SqlBaseLexer.WHEN, SqlBaseLexer.THEN, SqlBaseLexer.ELSE, SqlBaseLexer.AND, SqlBaseLexer.OR,
          SqlBaseLexer.NOT, SqlBaseLexer.BANG, SqlBaseLexer.EQ, SqlBaseLexer.NSEQ, SqlBaseLexer.NEQ, SqlBaseLexer.NEQJ,
          SqlBaseLexer.LT, SqlBaseLexer.LTE, SqlBaseLexer.GT, SqlBaseLexer.GTE, SqlBaseLexer.SHIFT_LEFT,
          SqlBaseLexer.SHIFT_RIGHT, SqlBaseLexer.SHIFT_RIGHT_UNSIGNED, SqlBaseLexer.PLUS, SqlBaseLexer.MINUS,
          SqlBaseLexer.ASTERISK, SqlBaseLexer.SLASH, SqlBaseLexer.PERCENT, SqlBaseLexer.TILDE, SqlBaseLexer.AMPERSAND,
          SqlBaseLexer.PIPE, SqlBaseLexer.CONCAT_PIPE, SqlBaseLexer.HAT, SqlBaseLexer.COLON, SqlBaseLexer.DOUBLE_COLON,
          SqlBaseLexer.DOT, SqlBaseLexer.ARROW, SqlBaseLexer.DIV, SqlBaseLexer.BETWEEN, SqlBaseLexer.LIKE,
          SqlBaseLexer.ILIKE, SqlBaseLexer.RLIKE, SqlBaseLexer.FROM, SqlBaseLexer.COLLATE, SqlBaseLexer.INTERVAL,
          SqlBaseLexer.COMMA, SqlBaseLexer.OVER);

  /** With one of these before ANY, SOME or ALL, a bracket is ambiguous. */
  private static final Set<Integer> LIKES = Set.of(SqlBaseLexer.LIKE, SqlBaseLexer.ILIKE);

  private static final Set<Integer> QUANTIFIERS = Set.of(SqlBaseLexer.ANY, SqlBaseLexer.SOME, SqlBaseLexer.ALL);

  private final CharStream text;
  private final Lexer lexer;

  /** What is open between the brackets of each level: CASE, and the arrows of lambdas. Closing a bracket closes it too. */
  private final int[] cases = new int[MOST + 2];

  private final int[] arrows = new int[MOST + 2];

  /** Which open brackets Spark's grammar reads in two ways. */
  private final boolean[] ambiguous = new boolean[MOST + 2];

  private int ambiguities;
  private int inAmbiguous;
  private int brackets;
  private int inBrackets;
  private int types;
  private int prefixes;
  private int most;
  private int last = Token.INVALID_TYPE;
  private int beforeLast = Token.INVALID_TYPE;

  private Depth(String sql) {
    if (sql.length() > MOST_CHARACTERS) {
      throw new Refused("a statement of more than " + MOST_CHARACTERS + " characters", "write it in parts");
    }
    text = new UpperCaseCharStream(CharStreams.fromString(sql));
    lexer = new SqlBaseLexer(text);
    lexer.removeErrorListeners();
  }

  /** Refuses a statement that Spark's parser must not see. */
  static void statement(String sql) {
    Depth depth = new Depth(sql);
    depth.step();
    // Scripts nest without a bracket, and are refused whatever is in them.
    if (depth.last == SqlBaseLexer.BEGIN) throw Refused.because(Lists.SCRIPT);
    depth.finish();
  }

  /** How deep a text is nested; {@link Refused} if that is too deep. */
  public static int of(String sql) {
    return new Depth(sql).finish();
  }

  private int finish() {
    while (last != Token.EOF) step();
    return most;
  }

  /** To the next token that is neither a comment nor a space. */
  private void step() {
    Token token;
    do {
      if (opens(1)) comment();
      token = lexer.nextToken();
    } while (token.getChannel() != Token.DEFAULT_CHANNEL);
    boolean isName = last == SqlBaseLexer.DOT && Character.isLetter(token.getText().charAt(0));
    int type = isName ? SqlBaseLexer.IDENTIFIER : token.getType();
    count(type);
    inAmbiguous += ambiguities > 0 ? 1 : 0;
    if (inAmbiguous > MOST_IN_AMBIGUOUS) {
      throw new Refused("more than " + MOST_IN_AMBIGUOUS + " words in IDENTIFIER(...) or LIKE ANY (...)", "write it in parts");
    }
    beforeLast = last;
    last = type;
    prefixes = PREFIXES.contains(last) ? prefixes + 1 : 0;
    int depth = brackets + inBrackets + types + prefixes;
    if (depth > MOST) throw new Refused("a statement that is nested more than " + MOST + " deep", "write it in parts");
    most = Math.max(most, depth);
  }

  private void count(int type) {
    switch (type) {
      case SqlBaseLexer.LEFT_PAREN, SqlBaseLexer.LEFT_BRACKET -> open();
      case SqlBaseLexer.RIGHT_PAREN, SqlBaseLexer.RIGHT_BRACKET -> close();
      case SqlBaseLexer.CASE -> add(cases, 1);
      case SqlBaseLexer.END -> add(cases, cases[brackets] == 0 || BEFORE_EXPRESSION.contains(last) ? 0 : -1);
      case SqlBaseLexer.ARROW -> add(arrows, 1);
      case SqlBaseLexer.COMMA -> add(arrows, -arrows[brackets]);
      case SqlBaseLexer.LT -> types += TYPES.contains(last) ? 1 : 0;
      case SqlBaseLexer.GT -> types -= types > 0 ? 1 : 0;
      default -> {}
    }
  }

  private void add(int[] open, int more) {
    open[brackets] += more;
    inBrackets += more;
  }

  private void open() {
    brackets++;
    ambiguous[brackets] = isAmbiguous();
    ambiguities += ambiguous[brackets] ? 1 : 0;
    if (ambiguities > MOST_AMBIGUOUS) {
      throw new Refused("IDENTIFIER(...) or LIKE ANY (...) nested more than " + MOST_AMBIGUOUS + " deep", "write it in parts");
    }
  }

  /**
   * `IDENTIFIER(` and `LIKE ANY (` are also calls. The parser tries both: it takes long for many words, and twice as long
   * for each level.
   */
  private boolean isAmbiguous() {
    return last == SqlBaseLexer.IDENTIFIER_KW || (QUANTIFIERS.contains(last) && LIKES.contains(beforeLast));
  }

  private void close() {
    if (brackets == 0) return;
    ambiguities -= ambiguous[brackets] ? 1 : 0;
    add(cases, -cases[brackets]);
    add(arrows, -arrows[brackets]);
    brackets--;
  }

  /** The lexer itself takes long for comments in comments: whether one is too deep is seen before it gets there. */
  private void comment() {
    int open = 0;
    int at = 1;
    do {
      if (opens(at)) open++;
      else if (text.LA(at) == '*' && text.LA(at + 1) == '/') open--;
      else at--;
      at += 2;
      if (open > MOST_COMMENTS) throw new Refused("comments inside comments", "close them one by one");
    } while (open > 0 && text.LA(at) != CharStream.EOF);
  }

  /** A hint is no comment: what it holds is SQL. */
  private boolean opens(int at) {
    return text.LA(at) == '/' && text.LA(at + 1) == '*' && text.LA(at + 2) != '+';
  }
}
