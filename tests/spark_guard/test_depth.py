"""What the guard counts as nested is what Spark's own lexer and parser take for nested."""

import base64
import random
import time
from collections.abc import Iterable
from typing import Any

import pytest

from tests.spark_guard import java_programs
from tests.spark_guard.nesting import Nested, comment

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

LEVELS = 40_000
REFUSED = "HEADGATE_REFUSED: a statement that is nested more than 200 deep"


def _asked(classpath: str, statements: Iterable[str]) -> list[tuple[str, str, str]]:
    """Each statement with its depth or `refused`, and with `parsed`, `failed` or `unparsed`."""
    asked = list(statements)
    given = "\n".join(base64.b64encode(one.encode()).decode() for one in asked)
    lines = java_programs.run("DepthProbe", classpath, given=given).splitlines()
    answers = [line.split(" ") for line in lines if line.endswith(("parsed", "failed"))]
    assert len(answers) == len(asked)
    return [(one, depth, how) for one, (depth, how) in zip(asked, answers, strict=True)]


def test_depth_is_what_spark_takes_for_nested(classpath: str) -> None:
    """Random statements of known depth, full of comments, strings and names that hold brackets."""
    made = [Nested(random.Random(seed)) for seed in range(400)]  # noqa: S311
    answers = _asked(classpath, (one.sql for one in made))
    wrong = [(one.depth, *answer) for one, answer in zip(made, answers, strict=True) if answer[1] != str(one.depth)]
    assert wrong == []
    assert [answer for answer in answers if answer[2] != "parsed"] == []


AFTER = (
    "", "a", "1", "'s'", "NULL", "a.", "a:", "a::", ")", "NOT", "!", "-", "+", "~", "a AND", "a OR", "a =", "a ==", "a <=>", "a <>",
    "a !=", "a <", "a <=", "a >", "a >=", "a <<", "a >>", "a >>>", "a +", "a -", "a *", "a /", "a %", "a DIV", "a &", "a |",
    "a ^", "a ||", "a ->", "a IS", "a IS NOT", "a IS DISTINCT FROM", "a IN", "a LIKE", "a ILIKE", "a RLIKE", "a REGEXP",
    "a BETWEEN", "a BETWEEN b AND", "a NOT LIKE", "a COLLATE", "sum(a) OVER", "sum(a) IGNORE NULLS OVER", "INTERVAL", "DATE",
    "a AT TIME ZONE", "a ESCAPE", "a LIKE ANY", "EXISTS", "DISTINCT", "a AS", "array < 1 AND 1 >", "a::array<int>", "a[1]", "?",
    "CASE WHEN a THEN b END", "a.case", "map < 1 OR a.end >", "/*+ x */", "a --(\r",
)  # fmt: skip


def test_an_end_that_spark_takes_for_a_name_closes_no_case(classpath: str) -> None:
    """`end` is also a name. Where Spark parses it as one, it must not hide that CASE is still open."""
    forms = ("CASE WHEN {} end THEN ", "CASE {} end WHEN 1 THEN ", "CASE WHEN a THEN {} end ELSE ")
    levels = [form.format(after) for form in forms for after in AFTER]
    few = _asked(classpath, (f"SELECT {level * 3}1{' END' * 3}" for level in levels))
    names = [level for level, (_, _, how) in zip(levels, few, strict=True) if how == "parsed"]
    assert len(names) >= 40
    many = _asked(classpath, (f"SELECT {level * 201}1{' END' * 201}" for level in names))
    assert [level for level, (_, depth, _) in zip(names, many, strict=True) if depth != "refused"] == []


def test_many_cases_beside_each_other_are_not_deep(classpath: str) -> None:
    case = "CASE WHEN a > 1 THEN t.end ELSE t.case END"
    typed = "from_json(a, 's')::struct<a: array<int>>, transform(b, (x, y) -> x + y)"
    statements = [f"SELECT {', '.join([one] * 500)} FROM t" for one in (case, typed)]
    assert [(depth, how) for _, depth, how in _asked(classpath, statements)] == [("1", "parsed"), ("3", "parsed")]


def deep() -> dict[str, str]:
    """Statements that keep Spark's parser busy for minutes, each in another disguise."""
    brackets = "(" * LEVELS
    return {
        "brackets": f"SELECT {brackets}1{')' * LEVELS}",
        "square brackets": f"SELECT {'a[' * LEVELS}1{']' * LEVELS}",
        "a comment that CR ends": f"SELECT -- \r{brackets}1",
        "a comment that goes on": f"SELECT -- '\\\n ' \n{brackets}1",
        "a raw string": rf"SELECT r'\', {brackets}1, r'\'",
        "a raw string in double quotes": rf'SELECT R"\", {brackets}1, R"\"',
        "doubled quotes": f"SELECT 'it''s', {brackets}1, ''''",
        "back quotes": rf"SELECT `\`, {brackets}1 AS `\`",
        "a hint": f"SELECT /*+ REPARTITION({brackets}1{')' * LEVELS}) */ 1",
        "a hint and a comment": f"SELECT /*+ a /* ' */ {brackets}1",
        "closed before": f"SELECT {')' * LEVELS}{brackets}1",
        "CASE": f"SELECT {'CASE end WHEN 1 THEN ' * 4000}1{' END' * 4000}",
        "CASE and a window": f"SELECT {'CASE WHEN sum(1) OVER end THEN ' * 2500}1{' END' * 2500}",
        "lambdas": f"SELECT f({'(x, y) -> ' * 8000}1)",
        "types": f"SELECT CAST(a AS {'ARRAY<' * 8000}INT{'>' * 8000})",
        "prefixes": f"SELECT {'- ~ ' * 20_000}1",
        "subqueries": f"SELECT {'(SELECT ' * 8000}1{')' * 8000}",
        "a script": f"{'BEGIN ' * 9000}SELECT 1;{' END;' * 9000}",
        "a schema": "SELECT from_json('[]', '" + "array<" * 8000 + "int" + ">" * 8000 + "')",
        "a schema in a variant": "SELECT variant_get(parse_json('1'), '$', '" + "array<" * 8000 + "int" + ">" * 8000 + "')",
    }  # fmt: skip


def test_what_is_deep_is_refused_before_it_is_parsed(spark: Any) -> None:
    began = time.monotonic()
    wrong = []
    for name, statement in deep().items():
        try:
            wrong.append(f"{name}: {spark.sql(statement).collect()}")
        except Exception as problem:  # noqa: BLE001
            expected = "HEADGATE_REFUSED: BEGIN ... END" if name == "a script" else REFUSED
            if expected not in str(problem):
                wrong.append(f"{name}: {str(problem)[:300]}")
    assert wrong == []
    # One of them alone, parsed, takes longer.
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("schema", ["repeat('array<', 40000)", "'a' || ' int'", "lower('A INT')"])
def test_a_schema_is_no_expression(spark: Any, schema: str) -> None:
    """Spark computes and parses it by itself; nobody sees before how deep it is."""
    with pytest.raises(Exception, match="HEADGATE_REFUSED: a schema that is computed; write the schema as text"):
        spark.sql(f"SELECT from_json('1', {schema})").collect()
    assert spark.sql("SELECT from_json('[1]', schema_of_json('[2]'))").collect()[0][0] == [1]
    assert spark.sql("SELECT from_json('[1]', :s)", args={"s": "array<int>"}).collect()[0][0] == [1]


AMBIGUOUS = ("SELECT * FROM", "IDENTIFIER("), ("DROP TABLE", "IDENTIFIER("), *(
    ("SELECT", f"a {like} {quantifier} (") for like in ("LIKE", "NOT ILIKE") for quantifier in ("ANY", "some", "ALL")
)  # fmt: skip


@pytest.mark.parametrize(("start", "level"), AMBIGUOUS)
def test_what_the_parser_reads_in_two_ways_is_not_nested_in_itself(classpath: str, start: str, level: str) -> None:
    """Each level doubles the time: 30 of them take Spark's parser minutes."""
    few, many, between, beside = (
        f"{start} {level * 4}'a'{')' * 4}",
        f"{start} {level * 5}'a'{')' * 5}",
        f"{start} {f'{level}(f(' * 5}'a'{')))' * 5}",
        f"SELECT {', '.join([f'{level}1)'] * 50)}, {level * 4}1{')' * 4}",
    )
    answers = [answer[1:] for answer in _asked(classpath, (few, many, between, beside))]
    assert [depth for depth, _ in answers] == ["4", "refused", "refused", "4"]
    assert (answers[0][1], answers[3][1]) == ("parsed", "parsed")


def test_what_the_parser_reads_in_two_ways_is_not_long(classpath: str) -> None:
    """Its time grows with the square: 50,000 patterns take minutes, and as many values of IN not a second."""
    lists = [f"SELECT a LIKE ANY ({'1,' * many}1), a IN ({'1,' * 40_000}1)" for many in (4_900, 5_000)]
    assert [answer[1:] for answer in _asked(classpath, lists)] == [("1", "parsed"), ("refused", "unparsed")]


def test_ambiguous_brackets_are_refused_by_name(spark: Any) -> None:
    expected = r"HEADGATE_REFUSED: IDENTIFIER\(\.\.\.\) or LIKE ANY \(\.\.\.\) nested more than 4 deep"
    for statement in (f"SELECT {'a LIKE ANY (' * 30}1{')' * 30}", f"TABLE {'IDENTIFIER(' * 30}'a'{')' * 30}"):
        with pytest.raises(Exception, match=expected):
            spark.sql(statement).collect()


def test_comments_in_comments(classpath: str) -> None:
    side_by_side = f"SELECT /* {'/* ( */' * 500} */ 1"
    answers = _asked(
        classpath, [side_by_side, f"SELECT {comment(10)} 1", f"SELECT {comment(11)} 1", "SELECT " + "/*" * 45_000]
    )
    assert [answer[1:] for answer in answers] == [("0", "parsed"), ("0", "parsed"), ("refused", "unparsed"), ("refused", "unparsed")]  # fmt: skip


def test_a_statement_that_is_very_long_is_refused(classpath: str) -> None:
    assert [one[1] for one in _asked(classpath, ["SELECT " + "1," * 500_000 + "1"])] == ["refused"]
