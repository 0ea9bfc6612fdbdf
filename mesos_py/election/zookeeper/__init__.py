"""Election through ZooKeeper, in the layout that Mesos' clients know.

`url.py` says where, `layout.py` what is kept there, `lease.py` for how long a leader may
be certain; these are pure.  `session.py` is the one module that speaks to kazoo.
`candidacy.py` is one attempt to lead, `contender.py` and `detector.py` are the faces.
"""
