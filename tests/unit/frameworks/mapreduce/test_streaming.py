"""Hadoop Streaming's options, as people and mrjob give them."""

import pytest

from frameworks.mapreduce import streaming
from frameworks.mapreduce.streaming import Given, HelpWanted, parse
from mesos_py.errors import InvalidValue

NEEDED = ["-input", "in", "-output", "out", "-mapper", "cat"]


def refused(*words, with_needed=True):
    with pytest.raises(InvalidValue) as caught:
        parse([*(NEEDED if with_needed else []), *words])
    return caught.value


def test_the_least_that_is_needed():
    found = parse(NEEDED)
    assert found.inputs == ["in"]
    assert (found.output, found.mapper) == ("out", "cat")
    # Without a reducer what maps wrote goes through as it is, sorted.
    assert (found.reducer, found.reduces) == ("cat", 1)
    assert found.partitioner == "hash"


def test_options_come_in_any_order_with_one_dash_or_two():
    words = "-reducer wc --numReduceTasks 3 -output o -D mapreduce.job.name=n -mapper m -input i"
    found = parse(words.split())
    assert (found.reducer, found.reduces, found.mapper) == ("wc", 3, "m")
    assert found.conf["mapreduce.job.name"] == "n"


def test_empty_parts_may_be_unwanted():
    assert not parse(NEEDED).lazy_output
    assert parse([*NEEDED, "-lazyOutput"]).lazy_output


def test_inputs_repeat_and_part_at_commas_but_not_in_braces():
    found = parse([*NEEDED, "-input", "a,b{c,d}/*,", "-input", "e"])
    assert found.inputs == ["in", "a", "b{c,d}/*", "e"]


@pytest.mark.parametrize("missing", ["-input", "-output", "-mapper"])
def test_what_is_missing_is_named(missing):
    at = NEEDED.index(missing)
    error = refused(*NEEDED[:at], *NEEDED[at + 2 :], with_needed=False)
    assert error.field == missing


@pytest.mark.parametrize(
    "words",
    [
        ["-reducer", "NONE"],
        ["-numReduceTasks", "0", "-reducer", "wc"],
        ["-D", "mapreduce.job.reduces=0", "-combiner", "wc"],
        ["-jobconf", "mapred.reduce.tasks=0"],
    ],
)
def test_without_reduces_there_is_no_reducer_nor_combiner(words):
    found = parse([*NEEDED, *words])
    assert (found.reducer, found.combiner, found.reduces) == (None, None, 0)
    assert found.conf["mapreduce.job.reduces"] == "0"


def test_the_option_for_reduces_wins_over_the_property():
    assert parse([*NEEDED, "-numReduceTasks", "4", "-D", "mapred.reduce.tasks=2"]).reduces == 4


def test_of_a_property_given_twice_the_last_counts_by_either_name():
    found = parse([*NEEDED, "-D", "mapred.reduce.tasks=2", "-D", "mapreduce.job.reduces=5"])
    assert found.reduces == 5


def test_properties_in_one_word_with_equals_in_values_and_of_others():
    found = parse([*NEEDED, "-Dmy.own=a=b", "-D", "empty="])
    assert found.conf["my.own"] == "a=b"
    assert found.conf["empty"] == ""


def test_a_property_with_a_bad_value_is_refused():
    error = refused("-D", "mapreduce.map.memory.mb=lots")
    assert error.field == "mapreduce.map.memory.mb"
    assert error.value == "lots"


@pytest.mark.parametrize("word", ["noequals", "=value"])
def test_properties_must_have_a_name_and_a_value(word):
    assert refused("-D", word).field == "-D"


def test_files_archives_and_their_names():
    found = parse(
        [
            *NEEDED,
            *("-file", "dir/m#1.py"),
            *("-files", "hdfs:///a/b.txt#c.txt,local.py"),
            *("-archives", "hdfs:///x.tgz#x,y.zip"),
            *("-cacheFile", "hdfs:///p/q#r"),
            *("-cacheArchive", "z.tar.gz#z"),
        ]
    )
    assert found.shipped == [
        Given("-file", "dir/m#1.py", "m#1.py"),
        Given("-files", "hdfs:///a/b.txt", "c.txt"),
        Given("-files", "local.py", "local.py"),
        Given("-archives", "hdfs:///x.tgz", "x", True),
        Given("-archives", "y.zip", "y.zip", True),
        Given("-cacheFile", "hdfs:///p/q", "r"),
        Given("-cacheArchive", "z.tar.gz", "z", True),
    ]


def test_two_files_of_one_name_are_refused_naming_both():
    error = refused("-file", "a/m.py", "-files", "b/m.py")
    assert error.field == "-files"
    assert "a/m.py" in error.reason
    assert "b/m.py" in str(error)


def test_the_same_file_twice_is_one():
    assert len(parse([*NEEDED, "-file", "a/m.py", "-file", "a/m.py"]).shipped) == 1


@pytest.mark.parametrize("text", ["a#", "a#b/c", "#b"])
def test_bad_names_after_the_mark_are_refused(text):
    assert refused("-files", text).value == text


def test_variables_need_a_name_and_a_value():
    found = parse([*NEEDED, "-cmdenv", "A=b=c", "-cmdenv", "EMPTY="])
    assert found.env == {"A": "b=c", "EMPTY": ""}
    assert refused("-cmdenv", "1A=b").field == "-cmdenv"
    assert refused("-cmdenv", "A").field == "-cmdenv"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner", "key-field"),
        ("org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedPartitioner", "key-field"),
        ("KeyFieldBasedPartitioner", "key-field"),
        ("org.apache.hadoop.mapred.lib.HashPartitioner", "hash"),
    ],
)
def test_partitioners_by_class_and_short_name(text, kind):
    assert parse([*NEEDED, "-partitioner", text]).partitioner == kind
    assert parse([*NEEDED, "-D", f"mapred.partitioner.class={text}"]).partitioner == kind


def test_other_partitioners_and_formats_are_refused_with_what_there_is():
    assert "KeyFieldBasedPartitioner" in refused("-partitioner", "a.b.TotalOrder").reason
    assert "TextInputFormat" in refused("-inputformat", "SequenceFileInputFormat").reason
    assert "TextOutputFormat" in refused("-outputformat", "NullOutputFormat").reason


def test_formats_by_class_and_short_name():
    found = parse([*NEEDED, "-inputformat", "org.apache.hadoop.mapred.TextInputFormat"])
    assert found.input_format == "text"
    assert parse([*NEEDED, "-outputformat", "TextOutputFormat"]).output_format == "text"
    found = parse([*NEEDED, "-inputformat", "org.apache.hadoop.mapred.lib.NLineInputFormat"])
    assert found.input_format == "nline"


def test_java_classes_as_programs_are_refused():
    error = refused("-reducer", "org.apache.hadoop.mapred.lib.IdentityReducer")
    assert "Java" in error.reason
    assert refused("-reducer", "aggregate").field == "-reducer"


def test_programs_with_dots_and_capitals_are_programs():
    assert parse([*NEEDED, "-reducer", "./my.Reducer arg"]).reducer == "./my.Reducer arg"


@pytest.mark.parametrize("name", sorted(streaming.REFUSED))
def test_options_of_hadoop_that_we_do_not_have_say_why(name):
    error = refused(name, "value")
    assert error.field == name
    assert "not supported" in error.reason


def test_unknown_options_name_the_nearest():
    assert "nearest is -mapper" in refused("-maper", "x").reason
    assert "nearest is -numReduceTasks" in refused("-numreducetasks", "1").reason


def test_a_stray_word_is_refused():
    assert refused("stray").value == "stray"


def test_an_option_without_its_value_is_refused():
    assert refused("-reducer").field == "-reducer"


def test_an_option_for_one_value_given_twice_is_refused():
    assert refused("-mapper", "other").field == "-mapper"


def test_help_lists_options_and_info_properties():
    with pytest.raises(HelpWanted) as caught:
        parse(["-help"])
    assert "-numReduceTasks N" in str(caught.value)
    assert "mapreduce.job.reduces" not in str(caught.value)
    with pytest.raises(HelpWanted) as caught:
        parse(["-info"])
    assert "mapreduce.job.reduces" in str(caught.value)


def test_the_shape_of_what_mrjob_gives():
    words = [
        *("-files", "hdfs:///user/u/tmp/mrjob/k/files/wc.py#wc.py"),
        *("-archives", "hdfs:///user/u/tmp/mrjob/k/files/mrjob.zip#mrjob.zip"),
        *("-D", "mapreduce.job.name=wc", "-D", "stream.num.map.output.key.fields=2"),
        *("-partitioner", "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"),
        *("-cmdenv", "TZ=UTC", "-input", "hdfs:///i/a", "-input", "hdfs:///i/b"),
        *("-output", "hdfs:///user/u/out"),
        *("-mapper", "/bin/sh -ex setup-wrapper.sh python3 wc.py --step-num=0 --mapper"),
        *("-combiner", "sh -c 'a | b'", "-reducer", "python3 wc.py --step-num=0 --reducer"),
    ]
    found = parse(words)
    assert found.combiner == "sh -c 'a | b'"
    assert found.inputs == ["hdfs:///i/a", "hdfs:///i/b"]
    assert found.shipped[1] == Given(
        "-archives", "hdfs:///user/u/tmp/mrjob/k/files/mrjob.zip", "mrjob.zip", True
    )
