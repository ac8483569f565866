import pickle

from rekindle.errors import InvalidFile, InvalidSetting


def test_an_error_carries_the_settings_that_it_names():
    """A name in backticks is an argument in Python and an option at the command line."""
    assert InvalidSetting("Nothing is named.").settings == ()
    assert InvalidSetting("`low` is above `high`; lower `low`, or use `high=None`.").settings == ("low", "high")


def test_an_error_of_a_file_survives_the_way_between_processes():
    error = InvalidFile("counts.csv", "set `step`.")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.path, copy.problem) == (InvalidFile, str(error), error.path, error.problem)
    assert copy.settings == ("step",)
