"""Whom a task's process becomes."""

import os
import pwd

import pytest

from agent.containers.users import Users
from mesos_py.errors import Refused

ME = pwd.getpwuid(os.geteuid()).pw_name


def test_nobody_in_particular_is_the_agent_itself():
    user = Users().known("")
    assert user is not None
    assert (user.uid, user.gid, user.switch) == (os.geteuid(), os.getegid(), None)


def test_a_user_is_looked_up_once_and_then_known():
    users = Users()
    assert users.known(ME) is None
    found = users.find(ME)
    assert found.uid == os.geteuid()
    assert users.known(ME) is found
    assert users.find(ME) is found


def test_an_unknown_user_is_refused_by_name():
    with pytest.raises(Refused, match="'no-such-user' does not exist"):
        Users().find("no-such-user")


@pytest.mark.needs("root")
def test_root_may_become_another_user_with_that_users_groups():
    entry = pwd.getpwnam("nobody")
    user = Users().find("nobody")
    assert user.switch is not None
    uid, gid, groups = user.switch
    assert (uid, gid) == (entry.pw_uid, entry.pw_gid) == (user.uid, user.gid)
    assert entry.pw_gid in groups


def test_without_roots_rights_another_user_is_refused(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(Refused, match="without root's rights"):
        Users().find("root")
