"""The tests' own settings: how many workers run them."""

from types import SimpleNamespace

from vit_course import lessons


def test_workers_share_the_whole_and_are_spared_one_file(pytestconfig):
    house = pytestconfig.pluginmanager.get_plugin(str(lessons.ROOT / "conftest.py"))

    def workers(*names):
        return house.pytest_xdist_auto_num_workers(SimpleNamespace(args=names))

    assert workers("tests", "notebooks") == workers(__file__, __file__) == 2
    assert workers(__file__) == workers(f"{__file__}::test_workers") == 0
